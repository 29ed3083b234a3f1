#!lua flags=allow-oom
-- Restricts a token and its former secrets to the users (`limit` "us") or agents ("ag") in `values`.
-- KEYS: names, tokens...
-- ARGV: id, digest, limit, values
-- -> 1, or 0 if the token was rotated or removed in the meantime
if redis.call('HGET', names, id) ~= digest then return 0 end
for i = tokens_at, #KEYS do
  if redis.call('EXISTS', KEYS[i]) == 1 then redis.call('HSET', KEYS[i], limit, values) end
end
return 1
