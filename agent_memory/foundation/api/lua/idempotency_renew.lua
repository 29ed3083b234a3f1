#!lua
-- Renews the lease of a key's holder.
-- KEYS: answer
-- ARGV: holder, lease_ms: number
local clock = require("storage/clock")
if redis.call('HGET', answer, 'o') == holder then redis.call('HSET', answer, 'u', string.format('%.0f', clock.ms + lease_ms)) end
