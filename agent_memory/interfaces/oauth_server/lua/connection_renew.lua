#!lua
-- Uses a code or refresh token once: gives its API key a new secret and end, and stores the next refresh token.
-- The old secret stays valid for `grace_ms`, secrets before it end now.
-- KEYS: names, grant, next_grant, old_token, new_token, former...
-- ARGV: id, kind, old_digest, new_digest, lifetime_ms: number, listed_ms: number, grace_ms: number
-- -> 1; 0 if there is no such grant or key any longer, or the key was rotated in the meantime; -1 if the grant was used before
local clock = require("storage/clock")
if redis.call('HEXISTS', grant, 'us') == 1 then return -1 end
if redis.call('EXISTS', grant) == 0 or redis.call('EXISTS', old_token) == 0 then return 0 end
if redis.call('HGET', names, id) ~= old_digest then return 0 end
redis.call('HSET', grant, 'us', '1')
redis.call('COPY', grant, next_grant)
redis.call('HSET', next_grant, 'ki', kind)
redis.call('HDEL', next_grant, 'us', 'ru', 'cc')
redis.call('PEXPIRE', next_grant, listed_ms)
for i = former_at, #KEYS do redis.call('DEL', KEYS[i]) end
redis.call('COPY', old_token, new_token)
redis.call('HSET', new_token, 'ex', string.format('%.0f', clock.ms + lifetime_ms), 'pr', old_digest)
redis.call('PEXPIRE', new_token, lifetime_ms + listed_ms)
redis.call('HSET', names, id, new_digest)
local ends = math.min(clock.ms + grace_ms, tonumber(redis.call('HGET', old_token, 'ex')))
redis.call('HSET', old_token, 'ex', string.format('%.0f', ends))
redis.call('PEXPIREAT', old_token, math.max(ends, clock.ms + 1))
return 1
