#!lua
-- Stores a token that expires after `lifetime_ms` (0: never). An expired token stays listed for `listed_ms`.
-- `fields` are pairs of field and value.
-- KEYS: names, token
-- ARGV: id, digest, lifetime_ms: number, listed_ms: number, fields...
-- -> the creation time (ms), or 0 if a token with this digest exists
local clock = require("storage/clock")
if redis.call('EXISTS', token) == 1 then return 0 end
redis.call('HSET', token, 'ca', string.format('%.0f', clock.ms), unpack(ARGV, fields_at))
if lifetime_ms > 0 then
  redis.call('HSET', token, 'ex', string.format('%.0f', clock.ms + lifetime_ms))
  redis.call('PEXPIRE', token, lifetime_ms + listed_ms)
end
redis.call('HSET', names, id, digest)
return clock.ms
