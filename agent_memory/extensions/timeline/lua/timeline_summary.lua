#!lua
-- Stores the summary of a period, or puts it off; nothing where one of its events has changed since it was read.
--   mark     what was read of it
--   summary  JSON; nil: it waits until `later` (s)
-- KEYS: any
-- ARGV: root, owner, period, mark, later: number, summary?
-- -> 1, or 0 where it has changed
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
