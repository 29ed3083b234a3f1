#!lua
-- Stores a session's result and orders learning from it. If the result is the same as before, the script only repeats
-- the order, and only if the result was not learned yet.
-- KEYS: meta, order, order_due, order_dead, wake
-- ARGV: guard: json, result, order_json
-- -> {result, time (µs), number of the result, learning (JSON)}, or nil if there is no session
local clock = require("storage/clock")
local outbox = require("storage/outbox")
local erasures = require("storage/erasures")
local session = redis.call('HMGET', meta, 'ep', 'rs', 'rm', 'rl', 'ag')
erasures.refuse(guard, session[5])
if not session[1] then return nil end
local is_new = session[2] ~= result
if is_new then
  redis.call('HSET', meta, 'rs', result, 'rt', clock.us_text())
  redis.call('HINCRBY', meta, 'rm', 1)
end
if is_new or not session[4] or tostring(cjson.decode(session[4]).mark) ~= session[3] then
  local name = string.match(order, '[^:]+$')
  redis.call('SET', order, order_json, 'EX', 604800)
  redis.call('ZREM', order_dead, name)
  outbox.mark_due(order_due, clock.ms, name)
  outbox.wake_dispatcher(wake)
end
return redis.call('HMGET', meta, 'rs', 'rt', 'rm', 'rl')
