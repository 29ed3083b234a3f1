#!lua
-- Replaces the secret of a token. The old secret stays valid for `grace_ms`.
-- KEYS: names, new_token, old_token
-- ARGV: id, new_digest, old_digest, grace_ms: number
-- -> 1, or 0 if the token was rotated or removed in the meantime
local clock = require("storage/clock")
if redis.call('HGET', names, id) ~= old_digest or redis.call('EXISTS', old_token) == 0 then return 0 end
redis.call('COPY', old_token, new_token)
local ends = clock.ms + grace_ms
local expires = tonumber(redis.call('HGET', old_token, 'ex') or '0')
if expires > 0 and expires < ends then ends = expires end
redis.call('HSET', old_token, 'ex', string.format('%.0f', ends))
redis.call('PEXPIREAT', old_token, math.max(ends, clock.ms + 1))
local former = redis.call('HGET', old_token, 'pr')
redis.call('HSET', new_token, 'pr', former and (former .. ' ' .. old_digest) or old_digest)
redis.call('HDEL', new_token, 'lu')
redis.call('HSET', names, id, new_digest)
return 1
