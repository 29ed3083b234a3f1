#!lua flags=allow-oom
-- Stores an erasure order and marks it due in one step. Until it is done, writes to `place` are refused.
-- KEYS: order, due, dead, wake
-- ARGV: root, name, body, place
local clock = require("storage/clock")
local outbox = require("storage/outbox")
redis.call('SET', order, body)
redis.call('ZREM', dead, name)
redis.call('ZADD', due, 0, name)
redis.call('ZADD', root .. 'erasing', 'NX', clock.ms, place)
outbox.wake_dispatcher(wake)
return 1
