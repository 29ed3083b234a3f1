#!lua flags=allow-oom
-- A token bucket: `n` tokens at `t` (ms), refilled at a rate (tokens per ms). Takes whole tokens, or none below `least`.
-- Runs in a full Redis, too: reads go on there.
-- KEYS: bucket
-- ARGV: rate: number, most: number, requested: number, least: number
-- -> {tokens taken, ms until there are so many (or 0)}
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
