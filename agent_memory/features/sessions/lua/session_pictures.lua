#!lua
-- Notes up to which message the session's pictures were seen.
-- KEYS: meta
-- ARGV: epoch, seen_to: number
-- -> 1 if done, 0 if the session changed
if redis.call('HGET', meta, 'ep') ~= epoch then return 0 end
redis.call('HSET', meta, 'pd', string.format('%.0f', seen_to))
return 1
