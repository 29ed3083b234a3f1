#!lua
-- Stores a period's summary (JSON); without a summary, delays the period until `later` (s). Does nothing if an event of
-- the period changed since `mark` was read.
-- KEYS: config
-- ARGV: root, owner, period, mark, later: number, summary?
-- -> 1, or 0 if an event changed
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
