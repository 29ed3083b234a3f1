#!lua
-- Stores a token for `lifetime_ms` (0: for ever); one that ran out is listed for `listed_ms` more. `fields`: fields and values.
-- KEYS: names, token
-- ARGV: id, digest, lifetime_ms: number, listed_ms: number, fields...
-- -> when it was made (ms), or 0 when there is one of this digest
local clock = require("storage/clock")
if redis.call('EXISTS', token) == 1 then return 0 end
redis.call('HSET', token, 'ca', string.format('%.0f', clock.ms), unpack(ARGV, fields_at))
if lifetime_ms > 0 then
  redis.call('HSET', token, 'ex', string.format('%.0f', clock.ms + lifetime_ms))
  redis.call('PEXPIRE', token, lifetime_ms + listed_ms)
end
redis.call('HSET', names, id, digest)
return clock.ms
