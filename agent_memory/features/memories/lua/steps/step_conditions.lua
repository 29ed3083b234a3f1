-- Finds the reason to refuse a step.
-- NEEDS: root
local documents = require("memories/documents")
local aliases = require("memories/aliases")
local owners = require("memories/owners")
local same_words = require("memories/same_words")
-- True if a memory was ever deleted (`since` is "1"), or was deleted since a time (µs).
local function is_deleted(mid, since)
  local deleted = since and redis.call('GET', root .. 'mt:' .. mid)
  return deleted and (since == '1' or tonumber(deleted) >= tonumber(since))
end
local function version_of(mid)
  local key = documents.key_of(mid)
  return key and redis.call('HGET', key, 'n') or ''
end
-- True if a version is the current one, or if an undo restored it as the current one.
local function is_current(mid, version)
  local key = documents.key_of(mid)
  if not key then return version == '' end
  local stored = redis.call('HMGET', key, 'n', 'of')
  return stored[1] == version or stored[2] == version
end
local function belongs_to_another(step)
  local owner = owners.owner_of(step.alias or step.mid)
  return owner and owner ~= ARGV[values_at + step.owner]
end
local function against_put(step)
  same_words.look_up(step)
  local key = step.key
  local stored = key and redis.call('HMGET', key, 'h', 'n') or {}
  if is_deleted(step.mid, step.deleted_since) then return 'buried' end
  if step.expect and (stored[2] or '') ~= step.expect then return 'moved' end
  if step.digest and stored[1] == step.digest then return 'same' end
  if not key then
    if step.alias_of and step.alias_digest == step.digest then return step.deleted_since and 'buried' or 'same' end
    local holder = step.unique and same_words.conflicting(step, step.kin_holder)
    if not holder and step.unique == 'words' then holder = same_words.conflicting(step, step.words_holder) end
    if holder then return 'twin ' .. holder end
  end
  local holder = step.slot and same_words.conflicting(step, step.slot_holder)
  if holder then return 'slot ' .. holder end
  return step.shares and 'shared' or nil
end
-- Returns nil if the step may be done; else "buried", "moved", "same", "shared", "twin <mid>" or "slot <mid>".
local function against(step)
  if step.op == 'put' then return against_put(step) end
  if step.op == 'restore' then
    if not is_current(step.mid, step.to) then return 'moved' end
    if step.from ~= '' and redis.call('EXISTS', documents.history_key(step.mid .. '.' .. step.from)) == 0 then return 'moved' end
  elseif step.op == 'claim' then
    if redis.call('HGET', root .. 'ch:' .. step.id, 'st') ~= step.state then return 'moved' end
  elseif step.expect and version_of(step.mid) ~= step.expect then
    return 'moved'
  elseif step.op == 'evidence' then
    if not step.put_before and not documents.key_of(step.mid) then return 'moved' end
    if step.alias and is_deleted(step.alias, step.deleted_since) then return 'buried' end
    if step.alias and documents.key_of(step.alias) then return 'moved' end
  end
  return nil
end
return {against = against, belongs_to_another = belongs_to_another}
