#!lua
-- Frees an idempotency key if `holder` still holds it.
-- KEYS: answer
-- ARGV: holder
if redis.call('HGET', answer, 'o') == holder then redis.call('HDEL', answer, 'q', 'u', 'o') end
