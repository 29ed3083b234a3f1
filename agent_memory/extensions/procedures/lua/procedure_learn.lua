#!lua
-- Stores what a session taught, once per result: a procedure (unless `fields` is empty) and its tool calls.
-- Stores nothing if the session is missing or has another result, or if its owner got another learned procedure since.
--   expected_learned   the owner's counter of learned procedures, as read before
--   calls              each has `place`, the index of its tool in `tools` (from 0)
-- KEYS: meta, record, changes, order, order_due, order_dead, wake, owner, tools...
-- ARGV: epoch, mark, learned, expected_learned, expected, fields: json, unset: json, change, most_changes: number, vector_field, vector?, order_json?, calls: json
-- -> "done" or "moved" (something changed: read again)
local procedure_put = require("procedures/procedure_put")
local tool_record = require("procedures/tool_record")
local session = redis.call('HMGET', meta, 'ep', 'rm', 'rl')
if session[1] ~= epoch or session[2] ~= mark then return 'moved' end
if session[3] and cjson.decode(session[3]).mark == mark then return 'moved' end
if (redis.call('GET', owner) or '0') ~= expected_learned then return 'moved' end
if #fields > 0 then
  if not procedure_put.put() then return 'moved' end
  redis.call('INCR', owner)
  redis.call('EXPIRE', owner, 86400)
end
for _, call in ipairs(calls) do tool_record.record(KEYS[tools_at + call.place], call) end
redis.call('HSET', meta, 'rl', learned)
return 'done'
