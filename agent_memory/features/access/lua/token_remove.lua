#!lua flags=allow-oom
-- Deletes a token and its former secrets.
-- KEYS: names, tokens...
-- ARGV: id, digest
-- -> 1, or 0 if the token was rotated or removed in the meantime
if redis.call('HGET', names, id) ~= digest then return 0 end
redis.call('HDEL', names, id)
for i = tokens_at, #KEYS do redis.call('DEL', KEYS[i]) end
return 1
