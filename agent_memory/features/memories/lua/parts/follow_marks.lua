-- Marks changed memories in one command: a worker updates what is derived of them, also of deleted ones.
-- NEEDS: root
local clock = require("storage/clock")
-- So long, what changes one after the other is taken together.
local FOLLOWED_AFTER_MS = 100
local changed = {}
local function mark(mid) changed[mid] = true end
local function write()
  local members, at = {}, clock.ms + FOLLOWED_AFTER_MS
  for mid in pairs(changed) do
    members[#members + 1] = at
    members[#members + 1] = mid
  end
  for i = 1, #members, 1000 do
    redis.call('ZADD', root .. 'due:follow', 'LT', unpack(members, i, math.min(i + 999, #members)))
  end
end
return {mark = mark, write = write}
