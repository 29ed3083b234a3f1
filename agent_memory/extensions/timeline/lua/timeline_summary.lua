#!lua
-- Stores a period's summary (JSON), or (nil) delays it until `later` (s); refused if an event changed since `mark` was read.
-- KEYS: any
-- ARGV: root, owner, period, mark, later: number, summary?
-- -> 1, or 0 if it changed
local waiting_periods = require("timeline/waiting_periods")
local base = root .. 'tl:' .. owner
if redis.call('HGET', base .. ':s', 'g' .. period) ~= mark then return 0 end
if summary then
  redis.call('HSET', base .. ':s', period, summary)
  redis.call('HDEL', base .. ':s', 'g' .. period)
  redis.call('ZREM', base .. ':p', period)
else
  redis.call('ZADD', base .. ':p', later, period)
end
waiting_periods.note(owner)
return 1
