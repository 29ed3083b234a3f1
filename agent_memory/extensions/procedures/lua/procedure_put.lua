-- Writes a procedure if it has the expected version ("0": no such procedure yet). Keeps the former content in
-- `changes`, and orders the embedding if there is an `order_json`.
--   fields   alternating names and values
--   change   a JSON object, to which the script adds version and former content
-- NEEDS: record, changes, order, order_due, order_dead, wake, expected, fields, unset, change, most_changes, vector_field, vector, order_json
local clock = require("storage/clock")
local outbox = require("storage/outbox")
local NONE = 'null'
local function put()
  if (redis.call('HGET', record, 'v') or '0') ~= expected then return nil end
  local before = redis.call('HGET', record, 'd')
  redis.call('HDEL', record, 'im')
  redis.call('HSET', record, unpack(fields))
  if #unset > 0 then redis.call('HDEL', record, unpack(unset)) end
  if vector then redis.call('HSET', record, vector_field, vector) end
  local version = redis.call('HINCRBY', record, 'v', 1)
  redis.call('RPUSH', changes, '{"version":' .. string.format('%.0f', version) .. ',"before":' .. (before or NONE) .. ',' .. string.sub(change, 2))
  redis.call('LTRIM', changes, -most_changes, -1)
  if order_json then
    redis.call('SET', order, order_json, 'EX', 604800)
    redis.call('ZREM', order_dead, string.match(order, '[^:]+$'))
    outbox.mark_due(order_due, clock.ms, string.match(order, '[^:]+$'))
    outbox.wake_dispatcher(wake)
  end
  return version
end
return {put = put}
