-- Expires an item after its time to live (ms), or sooner at an import's `ends_at` (ms).
-- NEEDS: root, expiries
local clock = require("storage/clock")
local function expire(member, ttl, ends_at)
  local at = string.format('%.0f', math.min(clock.ms + ttl, ends_at or math.huge))
  redis.call('ZADD', expiries, at, member)
  redis.call('PEXPIREAT', root .. 'it:' .. string.sub(member, -32), at)
end
return {expire = expire}
