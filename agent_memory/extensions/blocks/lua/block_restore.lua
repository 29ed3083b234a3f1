#!lua
-- Stores an exported block with its changes, unless the owner already has a block of this label.
-- KEYS: blocks, changes, user_owners?, agent_owners?
-- ARGV: label, owner, identity, block, most: number, guard: json, entries...
-- -> {"new"}, {"many"} (the owner has too many blocks) or {"here", block} (the label exists)
local owners = require("blocks/owners")
local erasures = require("storage/erasures")
erasures.refuse(guard)
local raw = redis.call('HGET', blocks, label)
if raw then return {'here', raw} end
if redis.call('HLEN', blocks) >= most then return {'many'} end
redis.call('HSET', blocks, label, block)
for i = entries_at, #ARGV do redis.call('RPUSH', changes, ARGV[i]) end
owners.note(user_owners, agent_owners, owner, identity)
return {'new'}
