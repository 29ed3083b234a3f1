#!lua
-- Renews the lease of an idempotency key if `holder` still holds it.
-- KEYS: answer
-- ARGV: holder, lease_ms: number
local clock = require("storage/clock")
if redis.call('HGET', answer, 'o') == holder then redis.call('HSET', answer, 'u', string.format('%.0f', clock.ms + lease_ms)) end
