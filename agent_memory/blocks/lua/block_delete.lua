#!lua
-- Deletes a block with its changes, wherever it is attached.
-- KEYS: blocks, changes, attached, owners?
-- ARGV: root, label, owner, expected?
-- -> {"ok"}, {"missing"} or {"version", block}
local raw = redis.call('HGET', blocks, label)
if not raw then return {'missing'} end
local block = cjson.decode(raw)
if expected and expected ~= '*' and tonumber(expected) ~= block.v then return {'version', raw} end
for target, _ in pairs(block.to) do redis.call('HDEL', root .. 'bla:' .. target, owner .. ':' .. label) end
redis.call('HDEL', blocks, label)
redis.call('DEL', changes)
if owners and redis.call('EXISTS', blocks, attached) == 0 then redis.call('HDEL', owners, owner) end
return {'ok'}
