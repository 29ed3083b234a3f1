#!lua flags=allow-oom
-- Replaces a finished order with a receipt, unless another worker did so.
-- Work that begins after this may write to `place` again.
-- KEYS: order, receipts
-- ARGV: root, name, place, remembered_seconds: number, carried_out, receipt, ttl_seconds
local clock = require("storage/clock")
if redis.call('GET', order) ~= carried_out then return 0 end
redis.call('ZREM', root .. 'erasing', place)
redis.call('ZREMRANGEBYSCORE', root .. 'erased', '-inf', clock.ms - remembered_seconds * 1000)
redis.call('ZADD', root .. 'erased', clock.ms, place)
redis.call('EXPIRE', root .. 'erased', remembered_seconds)
redis.call('SET', order, receipt, 'EX', ttl_seconds)
redis.call('ZADD', receipts, clock.ms, name)
redis.call('ZREMRANGEBYSCORE', receipts, '-inf', clock.ms - ttl_seconds * 1000)
redis.call('EXPIRE', receipts, ttl_seconds)
return 1
