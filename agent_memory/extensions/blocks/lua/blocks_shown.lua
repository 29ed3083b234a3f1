#!lua flags=no-writes
-- Reads all blocks that a prompt may show. Each combination of the prompt's namespace, user and agent is an owner; the
-- script reads this owner's blocks, and the blocks attached to it. The agent defaults to the session's agent.
-- Owners' names and keys are computed as in `blocks/owners.py`. They share the hash slot of `any`.
-- KEYS: any, session?
-- ARGV: root, tenant, namespace?, user_id?, agent_id?
-- -> agent or "", then for each block {names, source, label, block}…
--   names   the sum of the owner's names: namespace 1, user 2, agent 4
--   source  of an attached block its own owner (JSON), else ""
local function part(text) return text and (#text .. ':' .. text) or '-' end
local agent = agent_id or (session and redis.call('HGET', session, 'ag')) or nil
local answer = {agent or ''}
for names = 1, 7 do
  local of_namespace, of_user, of_agent = names % 2 == 1, names % 4 >= 2, names >= 4
  if (not of_namespace or namespace) and (not of_user or user_id) and (not of_agent or agent) then
    local owner = redis.sha1hex(
      part('blocks') .. part(tenant) .. part(of_namespace and namespace) .. part(of_user and user_id) .. part(of_agent and agent)
    )
    local stored = redis.call('HGETALL', root .. 'bl:' .. owner)
    for i = 1, #stored, 2 do answer[#answer + 1] = {names, '', stored[i], stored[i + 1]} end
    local attached = redis.call('HGETALL', root .. 'bla:' .. owner)
    for i = 1, #attached, 2 do
      local source, label = string.match(attached[i], '^(%x+):(.*)$')
      local raw = redis.call('HGET', root .. 'bl:' .. source, label)
      if raw then answer[#answer + 1] = {names, attached[i + 1], label, raw} end
    end
  end
end
return answer
