#!lua
-- Attaches a block to another owner (`target`), whose prompts then show it, or detaches it. The link is stored on both
-- sides.
--   identity, target_identity   the block's owner and the target as JSON
--   user_owners, agent_owners   keys of the target's user and agent
-- KEYS: blocks, target_blocks, attached, user_owners?, agent_owners?
-- ARGV: label, owner, identity, target, target_identity, attach: flag, most: number
-- ARGV: most_targets: number, most_target_bytes: number, guard: json, target_guard: json
-- -> {"ok", block}, {"missing"}, {"many_attached"} (the target has too many attached blocks)
--    or {"targets"} (the block has too many targets)
local owners = require("blocks/owners")
local erasures = require("storage/erasures")
if attach then
  erasures.refuse(guard)
  erasures.refuse(target_guard)
end
local raw = redis.call('HGET', blocks, label)
if not raw then return {'missing'} end
local block = cjson.decode(raw)

-- Each edit and each prompt reads all targets of a block, so their number and size are limited.
local function has_room()
  local count, bytes = 1, #target_identity
  for _, other in pairs(block.to) do count, bytes = count + 1, bytes + #other end
  return count <= most_targets and bytes <= most_target_bytes
end
local name = owner .. ':' .. label
if attach then
  if redis.call('HEXISTS', attached, name) == 0 and redis.call('HLEN', attached) >= most then return {'many_attached'} end
  if not block.to[target] and not has_room() then return {'targets'} end
  redis.call('HSET', attached, name, identity)
  owners.note(user_owners, agent_owners, target, target_identity)
  block.to[target] = target_identity
else
  redis.call('HDEL', attached, name)
  block.to[target] = nil
  if redis.call('EXISTS', target_blocks, attached) == 0 then owners.drop(user_owners, agent_owners, target) end
end
local encoded = cjson.encode(block)
redis.call('HSET', blocks, label, encoded)
return {'ok', encoded}
