#!lua flags=allow-oom
-- Writes an order to erase down, marks it due, and refuses writes for whom it names (`place`) until it is done, in one step.
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
