#!lua
-- Forgets an owner without blocks and attachments.
-- KEYS: blocks, attached, user_owners?, agent_owners?
-- ARGV: owner
-- -> 1 if it was forgotten
local owners = require("blocks/owners")
if redis.call('EXISTS', blocks, attached) > 0 then return 0 end
owners.drop(user_owners, agent_owners, owner)
return 1
