-- Lets an item expire after its TTL (ms), or at `ends_at` (ms, set by imports) if that is earlier.
-- NEEDS: root, expiries
local clock = require("storage/clock")
local function expire(member, ttl, ends_at)
  local at = string.format('%.0f', math.min(clock.ms + ttl, ends_at or math.huge))
  redis.call('ZADD', expiries, at, member)
  redis.call('PEXPIREAT', root .. 'it:' .. string.sub(member, -32), at)
end
return {expire = expire}
