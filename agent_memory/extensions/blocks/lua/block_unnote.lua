#!lua
-- Removes an owner from the lists of its user and agent if it has neither blocks nor attached blocks.
-- KEYS: blocks, attached, user_owners?, agent_owners?
-- ARGV: owner
-- -> 1 if removed, 0 if the owner still has blocks or attached blocks
local owners = require("blocks/owners")
if redis.call('EXISTS', blocks, attached) > 0 then return 0 end
owners.drop(user_owners, agent_owners, owner)
return 1
