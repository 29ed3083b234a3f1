#!lua
-- Deletes all blocks of an owner with their changes and attachments, and detaches other owners' blocks from it.
-- KEYS: blocks, attached, user_owners?, agent_owners?
-- ARGV: root, owner
-- -> the deleted blocks
local owners = require("blocks/owners")
local stored, erased = redis.call('HGETALL', blocks), {}
for i = 1, #stored, 2 do
  for target, _ in pairs(cjson.decode(stored[i + 1]).to) do redis.call('HDEL', root .. 'bla:' .. target, owner .. ':' .. stored[i]) end
  erased[#erased + 1] = stored[i + 1]
  redis.call('DEL', root .. 'blh:' .. owner .. ':' .. redis.sha1hex(stored[i]))
end
for _, name in ipairs(redis.call('HKEYS', attached)) do
  local source, label = string.match(name, '^(%x+):(.*)$')
  local raw = redis.call('HGET', root .. 'bl:' .. source, label)
  if raw then
    local block = cjson.decode(raw)
    block.to[owner] = nil
    redis.call('HSET', root .. 'bl:' .. source, label, cjson.encode(block))
  end
end
redis.call('DEL', blocks, attached)
owners.drop(user_owners, agent_owners, owner)
return erased
