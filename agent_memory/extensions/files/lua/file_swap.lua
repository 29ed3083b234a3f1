#!lua
-- Replaces a file's record and its bytes, and places an order, if the record is still the expected one. '' means no record.
-- KEYS: files, users, holders, bytes, order?, order_dead?, order_due?, wake?
-- ARGV: file, expected, value, user, guard: json, has_data: flag, seconds, data, order_name?, order_body?, order_seconds?
-- -> 1, or 0 if the record changed
local erasures = require("storage/erasures")
local orders = require("jobs/orders")
erasures.refuse(guard)
if (redis.call('HGET', files, file) or '') ~= expected then return 0 end
if has_data then redis.call('SET', bytes, data, 'EX', seconds) else redis.call('UNLINK', bytes) end
if value == '' then
  redis.call('HDEL', files, file)
  redis.call('SREM', holders, user)
  if redis.call('EXISTS', files) == 0 then redis.call('SREM', users, user) end
else
  redis.call('HSET', files, file, value)
  redis.call('SADD', users, user)
  redis.call('SADD', holders, user)
end
if order then orders.place() end
return 1
