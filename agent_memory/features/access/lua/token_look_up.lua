#!lua flags=allow-oom
-- Reads a token, and records its use at most every `step_ms`. Runs even if Redis is full.
-- KEYS: token
-- ARGV: step_ms: number
-- -> {now (ms), field, value …}, or {} if there is no token
local clock = require("storage/clock")
local fields = redis.call('HGETALL', token)
if #fields == 0 then return {} end
local last_used = redis.call('HGET', token, 'lu')
local now = string.format('%.0f', clock.ms)
if not last_used or clock.ms - tonumber(last_used) > step_ms then redis.call('HSET', token, 'lu', now) end
return {now, unpack(fields)}
