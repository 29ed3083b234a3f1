#!lua
-- Releases a key of its holder.
-- KEYS: answer
-- ARGV: holder
if redis.call('HGET', answer, 'o') == holder then redis.call('HDEL', answer, 'q', 'u', 'o') end
