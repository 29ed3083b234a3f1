#!lua
-- Restores memories from an export unchanged, with their versions, aliases and evidence.
-- Existing memories stay unchanged.
--   reach         a message is indexed with the words of this many messages before and after it
--   buries        memories that were deleted here stay deleted
--   vector_field  field of the vectors of this store's model
--   uncompared    facts to compare for contradictions, because the last comparison may have passed their `n`
--   unmerged      facts to compare for duplicates, for the same reason
--   kept_seconds  lifetime of `uncompared` and `unmerged`
--   items         [{mid, owner, state ("current", "over" or "gone"), version, digest,
--                 fields, count (position and number of the hash's fields and values in `values`),
--                 fact: bool, vector (position in `values`)?, order?, score?, scope?, slot?,
--                 words? (fields of the standing that find a memory in the same words),
--                 versions: [{version, fields, count, bare: bool}…], aliases: [[mid, digest]…],
--                 evidence: [field, JSON…]}…]
--   values        fields and values of hashes, and vectors; positions count from 0
-- KEYS: due, tries, reasons, dead, wake, uncompared, unmerged
-- ARGV: root, vector_field, kept_seconds: number, reach: number, buries: flag, guard: json, items: json, values...
-- -> for each memory "new", "same" (it exists), "other" (its id has other content or another owner), "buried",
--    "slot" (another fact of its slot is current), "twin <mid>" (a memory in the same words is current)
local clock = require("storage/clock")
local outbox = require("storage/outbox")
local documents = require("memories/documents")
local follow_marks = require("memories/follow_marks")
local vector_tags = require("memories/vector_tags")
local standings = require("memories/standings")
local repetitions = require("memories/repetitions")
local owners = require("memories/owners")
local message_order = require("memories/message_order")
local erasures = require("storage/erasures")
local function objection(item)
  local owner = owners.owner_of(item.mid)
  if owner and owner ~= item.owner then return 'other' end
  local key = documents.key_of(item.mid)
  if key then
    local stored = redis.call('HMGET', key, 'n', 'h')
    return stored[1] == item.version and stored[2] == item.digest and 'same' or 'other'
  end
  if item.state == 'gone' then
    local last = item.versions[#item.versions]
    return redis.call('EXISTS', documents.history_key(item.mid .. '.' .. last.version)) == 1 and 'same' or nil
  end
  local is_current = item.state == 'current'
  local twin
  for _, name in ipairs(is_current and item.words or {}) do
    local holder = redis.call('HGET', root .. 'by:' .. item.scope, name)
    twin = twin or holder and redis.call('EXISTS', documents.memory_key(holder)) == 1 and holder
  end
  local alias = redis.call('GET', root .. 'al:' .. item.mid)
  if alias then return string.match(alias, '^%S+') == twin and 'same' or 'other' end
  if twin then return 'twin ' .. twin end
  if buries and redis.call('EXISTS', root .. 'mt:' .. item.mid) == 1 then return 'buried' end
  if item.slot and is_current then
    local holder = redis.call('HGET', root .. 'by:' .. item.scope, item.slot)
    if holder and documents.key_of(holder) then return 'slot' end
  end
  return nil
end
local function write(key, document)
  local first = values_at + document.fields
  redis.call('HSET', key, unpack(ARGV, first, first + document.count - 1))
end
local function write_current(item)
  local key = documents.memory_key(item.mid)
  write(key, item)
  if item.vector then
    vector_tags.write(item.mid, vector_field, ARGV[values_at + item.vector], {})
    if item.order then redis.call('ZADD', item.order, 'NX', item.score, item.mid) end
  else
    outbox.mark_due(due, clock.ms, item.mid)
    -- A worker may have indexed the neighbors already.
    if item.order then message_order.insert(item.order, item.mid, tonumber(item.score), 0) end
  end
  standings.link(item.mid, redis.call('HGET', key, 'bk'))
  if item.fact then
    for _, waiting in ipairs({uncompared, unmerged}) do
      redis.call('SADD', waiting, item.mid)
      redis.call('EXPIRE', waiting, kept_seconds)
    end
  end
end
local function write_alias(item, name, digest)
  local key = root .. 'al:' .. name
  local owner = owners.owner_of(name)
  if not documents.key_of(name) and redis.call('EXISTS', key) == 0 and (not owner or owner == item.owner) then
    redis.call('SET', key, item.mid .. ' ' .. digest)
    redis.call('ZADD', root .. 'mh:' .. item.mid, clock.us, 'a' .. name)
    redis.call('DEL', root .. 'mt:' .. name)
  end
end
local function restore(item)
  follow_marks.mark(item.mid)
  for _, version in ipairs(item.versions) do
    local name = item.mid .. '.' .. version.version
    write(documents.history_key(name), version)
    redis.call('ZADD', root .. 'mh:' .. item.mid, version.version, version.version)
    if version.bare then redis.call('SADD', root .. 'bare', name) end
  end
  redis.call('DEL', root .. 'mt:' .. item.mid)
  if item.state == 'current' then
    write_current(item)
  elseif item.state == 'over' then
    write(documents.history_key(item.mid), item)
    if not item.vector then outbox.mark_due(due, clock.ms, item.mid) end
  elseif redis.call('EXISTS', root .. 'al:' .. item.mid) == 0 then
    -- The memory was forgotten there. The tombstone keeps background work from restoring it here; an undo still can.
    redis.call('SET', root .. 'mt:' .. item.mid, clock.us_text(), 'EX', documents.TOMBSTONE_SECONDS)
  end
  for _, alias in ipairs(item.aliases) do write_alias(item, alias[1], alias[2]) end
  for i = 1, #item.evidence, 2 do redis.call('HSETNX', root .. 'ev:' .. item.mid, item.evidence[i], item.evidence[i + 1]) end
  repetitions.refresh(item.mid)
end
local function refuse_document(document)
  local owner, first = {}, values_at + document.fields
  for i = first, first + document.count - 1, 2 do owner[ARGV[i]] = ARGV[i + 1] end
  erasures.raise(erasures.objection(guard, owner.t, owner))
end
if erasures.is_active(guard) then
  for _, item in ipairs(items) do
    if item.fields then refuse_document(item) end
    for _, version in ipairs(item.versions) do refuse_document(version) end
  end
end
local states, wrote = {}, false
for _, item in ipairs(items) do
  local state = objection(item)
  if not state then
    wrote, state = true, 'new'
    restore(item)
  end
  states[#states + 1] = state
end
follow_marks.write()
if wrote then outbox.wake_dispatcher(wake) end
return states
