#!lua
-- Forgets that an owner has blocks, or some attached, where it has none any more.
-- KEYS: blocks, attached, user_owners?, agent_owners?
-- ARGV: owner
-- -> 1 where it had none
local owners = require("blocks/owners")
if redis.call('EXISTS', blocks, attached) > 0 then return 0 end
owners.drop(user_owners, agent_owners, owner)
return 1
