-- The step that writes a memory.
-- NEEDS: root, due, reach, neighbors_ms, embed_after_ms, values
local clock = require("storage/clock")
local outbox = require("storage/outbox")
local documents = require("memories/documents")
local follow_marks = require("memories/follow_marks")
local vector_tags = require("memories/vector_tags")
local standings = require("memories/standings")
local repetitions = require("memories/repetitions")
local history = require("memories/history")
local message_order = require("memories/message_order")
local change_log = require("memories/change_log")
local aliases = require("memories/aliases")
local same_words = require("memories/same_words")
local outdated_messages = require("memories/outdated_messages")
-- A message that was an alias and evidence now has other words, so it stops being either.
local function end_alias(step)
  aliases.remove(step.mid)
  if redis.call('HDEL', root .. 'ev:' .. step.alias_of, 'm' .. step.mid) == 1 then repetitions.refresh(step.alias_of) end
end
-- Moves the replaced version to the history, but keeps its vector; returns the version.
local function replace(mid, from, key, upkeep)
  local before, standing = history.archive(mid, from)
  standings.unlink(mid, standing)
  if from == key then
    -- Except after upkeep, a changed memory is no longer as its import (`im`) left it.
    if not upkeep then redis.call('HDEL', key, 'im') end
    redis.call('HDEL', key, 'k', 'ro', 'of', 'bk', 'q', 'es', 'ts', 'nt', 'om', unpack(vector_tags.NAMES))
  else
    redis.call('RENAME', from, key)
    local fields, vector = documents.read(mid, key)
    redis.call('DEL', key)
    if fields['ed'] then redis.call('HSET', key, 'ed', fields['ed']) end
    if #vector > 0 then redis.call('HSET', documents.vector_key(mid), unpack(vector)) end
  end
  return before
end
-- Writes all fields in one command, because each command indexes the memory again.
local function write_fields(step, key, digest, version)
  local shared_at, names_at, first_at = values_at + step.shared, values_at + step.field_names, values_at + step.field_values
  local fields = {unpack(ARGV, shared_at, shared_at + step.shared_count - 1)}
  local function add(name, value) fields[#fields + 1], fields[#fields + 2] = name, value end
  for i = 0, step.field_count - 1 do add(ARGV[names_at + i], ARGV[first_at + i]) end
  if step.outdates then add('om', step.outdates) end
  if step.edited then add('ed', clock.seconds_text()) end
  redis.call('HSET', key, 'h', digest, 'n', version, 'ra', clock.seconds_text(), 'bk', step.standing, unpack(fields))
end
-- Returns "changed" or "new".
local function put(step)
  local mid, key, from = step.mid, documents.memory_key(step.mid), step.key
  local vector_key = documents.vector_key(mid)
  local digest = step.digest or step.first_digest or from and redis.call('HGET', from, 'h') or ''
  if step.alias_of then end_alias(step) end
  local before = from and replace(mid, from, key, step.upkeep) or '-'
  redis.call('DEL', root .. 'mt:' .. mid)
  local version = history.new_version()
  write_fields(step, key, digest, version)
  if from then
    if not step.same_text then documents.delete_passages(mid) end
    vector_tags.copy(mid)
  end
  if step.leave then message_order.remove(step.leave, mid) end
  if step.order then message_order.insert(step.order, mid, nil, neighbors_ms) end
  change_log.add('m', mid, before, version)
  -- Followers need no new messages from programs or assistants.
  if from or not step.message or step.message.by_person then follow_marks.mark(mid) end
  local has_vector = step.same_text and redis.call('EXISTS', vector_key) == 1
  -- The history has no passages: a long memory that is restored from it needs new ones.
  if not has_vector or (from and from ~= key) or redis.call('HEXISTS', key, 'pl') == 1 then outbox.mark_due(due, clock.ms + embed_after_ms, mid) end
  local over = step.ends and history.is_over(key)
  if over and step.outdates then outdated_messages.mark(mid, step.outdates, redis.call('HGET', key, 'z')) end
  if over then history.close(mid) else standings.link(mid, step.standing) end
  if from then
    repetitions.refresh(mid)
  elseif step.words_digest and not over then
    same_words.absorb(step)
  end
  if not from and step.said_often then repetitions.refresh(mid) end
  return from and 'changed' or 'new'
end
return {put = put}
