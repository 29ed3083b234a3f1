-- The steps that change the evidence and aliases of memories.
-- NEEDS: root, due, neighbors_ms
local clock = require("storage/clock")
local outbox = require("storage/outbox")
local documents = require("memories/documents")
local repetitions = require("memories/repetitions")
local message_order = require("memories/message_order")
local change_log = require("memories/change_log")
local aliases = require("memories/aliases")
local same_words = require("memories/same_words")
local function evidence(step)
  if redis.call('HSETNX', root .. 'ev:' .. step.mid, step.field, step.json) == 1 then change_log.add('e', step.mid, step.field) end
  repetitions.refresh(step.mid)
  if step.alias then aliases.set(step.alias, step.mid, step.digest) end
  return 'done'
end
-- Makes a message with the words of a memory (`holder`) its evidence and alias. `without_position` is true if the
-- memory has no position in a session.
local function cite(step, holder, without_position)
  local message = step.message
  evidence({mid = holder, field = message.evidence_field, json = message.json, alias = step.mid, digest = step.digest})
  if step.order then message_order.insert(step.order, step.mid, nil, neighbors_ms) end
  if without_position and message.session then
    if redis.call('HSETNX', documents.memory_key(holder), 'pl', step.mid .. ' ' .. message.session) == 1 then
      outbox.mark_due(due, clock.ms, holder)
    end
  end
end
local function forget_alias(step, name)
  aliases.remove(name)
  if step.order then message_order.remove(step.order, name) end
  local key = documents.key_of(step.mid)
  if key and string.match(redis.call('HGET', key, 'pl') or '', '^%S+') == name then
    redis.call('HDEL', key, 'pl')
    outbox.mark_due(due, clock.ms, step.mid)
  end
end
local function forget_evidence(step)
  redis.call('HDEL', root .. 'ev:' .. step.mid, step.field)
  for _, name in ipairs(step.aliases or {}) do
    if aliases.target_of(name) == step.mid then forget_alias(step, name) end
  end
  repetitions.refresh(step.mid)
  return 'done'
end
local function absorb(step)
  if redis.call('EXISTS', documents.memory_key(step.mid)) == 1 then same_words.absorb(step) end
  return 'done'
end
local function inherit(step)
  for _, field in ipairs(step.fields) do
    local json = redis.call('HGET', root .. 'ev:' .. step.of, field)
    if json then redis.call('HSETNX', root .. 'ev:' .. step.mid, field, json) end
    redis.call('HDEL', root .. 'ev:' .. step.of, field)
  end
  for _, name in ipairs(step.names) do
    local _, digest = aliases.target_of(name)
    aliases.remove(name)
    aliases.set(name, step.mid, digest)
  end
  repetitions.refresh(step.mid)
  return 'done'
end
local function alias(step)
  aliases.remove(step.alias)
  aliases.set(step.alias, step.mid, step.digest)
  return 'done'
end
local function unalias(step)
  local target, digest = aliases.target_of(step.alias)
  if target then change_log.add('u', step.alias, target, digest) end
  aliases.remove(step.alias)
  return 'done'
end
return {evidence = evidence, cite = cite, forget_evidence = forget_evidence, absorb = absorb, inherit = inherit, alias = alias,
  unalias = unalias}
