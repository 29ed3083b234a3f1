-- Places a job order: stores it and marks it as due. `OrderStore.placement` returns the arguments.
-- NEEDS: order, order_dead, order_due, wake, order_name, order_body, order_seconds
local clock = require("storage/clock")
local outbox = require("storage/outbox")
local function place()
  redis.call('SET', order, order_body, 'EX', order_seconds)
  redis.call('ZREM', order_dead, order_name)
  redis.call('ZADD', order_due, 'LT', clock.ms, order_name)
  outbox.wake_dispatcher(wake)
end
return {place = place}
