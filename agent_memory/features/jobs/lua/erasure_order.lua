#!lua flags=allow-oom
-- Stores an erasure order and marks it due in one step. Until it is done, writes to `place` are refused.
-- KEYS: order, due, dead, wake
-- ARGV: root, name, body, place
local clock = require("storage/clock")
local outbox = require("storage/outbox")
-- A repeated request joins an open order: a new order would restart a running erasure, but nothing new was written.
if not redis.call('ZSCORE', root .. 'erasing', place) or redis.call('EXISTS', order) == 0 then
    redis.call('SET', order, body)
end
redis.call('ZREM', dead, name)
redis.call('ZADD', due, 0, name)
redis.call('ZADD', root .. 'erasing', 'NX', clock.ms, place)
outbox.wake_dispatcher(wake)
return 1
