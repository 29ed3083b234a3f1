#!lua
-- Deletes a block with its changes and attachments.
-- KEYS: blocks, changes, attached, user_owners?, agent_owners?
-- ARGV: root, label, owner, expected?
-- -> {"ok", block}, {"missing"} or {"version", block} (not the `expected` version)
local owners = require("blocks/owners")
local raw = redis.call('HGET', blocks, label)
if not raw then return {'missing'} end
local block = cjson.decode(raw)
if expected and expected ~= '*' and tonumber(expected) ~= block.v then return {'version', raw} end
for target, _ in pairs(block.to) do redis.call('HDEL', root .. 'bla:' .. target, owner .. ':' .. label) end
redis.call('HDEL', blocks, label)
redis.call('DEL', changes)
if redis.call('EXISTS', blocks, attached) == 0 then
  owners.drop(user_owners, agent_owners, owner)
end
return {'ok', raw}
