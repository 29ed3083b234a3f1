-- Marks changed and deleted memories in one command. A worker then updates the data derived from them.
-- NEEDS: root
local clock = require("storage/clock")
-- Changes of a memory within this time are followed together.
local FOLLOWED_AFTER_MS = 100
local changed = {}
local function mark(mid) changed[mid] = true end
local function write()
  local members, at = {}, clock.ms + FOLLOWED_AFTER_MS
  for mid in pairs(changed) do members[#members + 1], members[#members + 2] = at, mid end
  for i = 1, #members, 1000 do
    redis.call('ZADD', root .. 'due:follow', 'LT', unpack(members, i, math.min(i + 999, #members)))
  end
end
return {mark = mark, write = write}
