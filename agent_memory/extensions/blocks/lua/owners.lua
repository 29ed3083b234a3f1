-- Keeps, per user and per agent, the list of owners that have blocks or attached blocks.
local function note(user_owners, agent_owners, owner, identity)
  if user_owners then redis.call('HSET', user_owners, owner, identity) end
  if agent_owners then redis.call('HSET', agent_owners, owner, identity) end
end
local function drop(user_owners, agent_owners, owner)
  if user_owners then redis.call('HDEL', user_owners, owner) end
  if agent_owners then redis.call('HDEL', agent_owners, owner) end
end
return {note = note, drop = drop}
