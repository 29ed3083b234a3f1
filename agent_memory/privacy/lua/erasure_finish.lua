#!lua flags=allow-oom
-- Puts a receipt in the place of an order that was carried out, unless it was given anew.
-- KEYS: order
-- ARGV: carried_out, receipt, ttl_seconds
if redis.call('GET', order) == carried_out then return redis.call('SET', order, receipt, 'EX', ttl_seconds) end
return 0
