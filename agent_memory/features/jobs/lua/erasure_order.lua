#!lua flags=allow-oom
-- Stores an erasure order and marks it due in one step. Until it is done, writes to `place` are refused.
-- KEYS: orders, due, dead, wake
-- ARGV: root, name, body, place
-- -> the order's name: `name` and the time of the erasure's first request, so that each erasure has its own receipt. The
--    key of an order is `orders` and its name.
local clock = require("storage/clock")
local outbox = require("storage/outbox")
-- A repeated request joins an open order: a new order would restart a running erasure, but nothing new was written.
redis.call('ZADD', root .. 'erasing', 'NX', clock.ms, place)
local order = name .. '.' .. redis.call('ZSCORE', root .. 'erasing', place)
redis.call('SET', orders .. order, body, 'NX')
redis.call('ZREM', dead, order)
redis.call('ZADD', due, 'LT', clock.ms, order)
outbox.wake_dispatcher(wake)
return order
