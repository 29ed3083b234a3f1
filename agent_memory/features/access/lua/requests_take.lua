#!lua flags=allow-oom
-- A token bucket: `n` tokens at `t` (ms), refilled at `rate` (tokens per ms), at most `most`.
-- Takes up to `requested` whole tokens, but none if fewer than `least` are left.
-- Runs even if Redis is full, so that requests can still read.
-- KEYS: bucket
-- ARGV: rate: number, most: number, requested: number, least: number
-- -> {tokens taken, ms until `least` are available (0 if some were taken)}
local clock = require("storage/clock")
local level = redis.call('HMGET', bucket, 'n', 't')
local left = most
if level[1] then left = math.min(most, tonumber(level[1]) + math.max(0, clock.ms - tonumber(level[2])) * rate) end
local granted = math.floor(left) >= least and math.min(requested, math.floor(left)) or 0
left = left - granted
redis.call('HSET', bucket, 'n', string.format('%.6f', left), 't', string.format('%.0f', clock.ms))
redis.call('PEXPIRE', bucket, math.ceil((most - left) / rate) + 1000)
if granted > 0 then return {granted, 0} end
return {0, math.ceil((least - left) / rate)}
