#!lua
-- Deletes everything in `plan` at once.
-- With `keeps`, keeps a copy for an undo in `receipt`, and lists it in the owner's `receipts`.
--   gone      [{mid, expect (version, "" for none), order, positions (as `memory_delete`)}…]: whole memories to delete
--   dropped   [{mid, expect, versions}…]: former versions to delete
--   fields    [[key (without the root), field, before, after (nothing: delete)]…]: fields of hashes, such as evidence
--   proposals [change…]: proposed changes to delete
--   sessions  [{sid, epoch, version, live, entries: {number: entry or ""}, fewer_tokens (negative),
--             summary: true to delete it, memories (JSON or nothing),
--             own: [ids that wait in its journal],
--             journals: [{name, epoch, entries: {number: entry}, asked: {number: true}}…]}…]
--             `asked`: requests to forget. An undo does not restore them, so they are not carried out again
-- Sessions and journals get a new epoch, so that background work that has read the deleted data is fenced.
-- KEYS: due, tries, reasons, dead, session_due, wake, receipt, receipts
-- ARGV: root, reach: number, keeps: flag, name, undo_seconds: number
-- ARGV: header: json, plan: json
-- -> {"ok"}, or {"moved"} if something changed after it was read; then nothing is deleted
local clock = require("storage/clock")
local outbox = require("storage/outbox")
local documents = require("memories/documents")
local follow_marks = require("memories/follow_marks")
local aliases = require("memories/aliases")
local message_order = require("memories/message_order")
local deletion = require("memories/deletion")
local owners = require("memories/owners")
local kept_copy = require("privacy/kept_copy")
local function version_of(mid)
  local key = documents.key_of(mid)
  return key and redis.call('HGET', key, 'n') or ''
end
local function has_moved()
  for _, memory in ipairs(plan.gone) do if version_of(memory.mid) ~= memory.expect then return true end end
  for _, memory in ipairs(plan.dropped) do if version_of(memory.mid) ~= memory.expect then return true end end
  for _, change in ipairs(plan.fields) do
    if redis.call('HGET', root .. change[1], change[2]) ~= change[3] then return true end
  end
  for _, session in ipairs(plan.sessions) do
    local stored = redis.call('HMGET', root .. 'w:' .. session.sid, 'ep', 'v')
    if session.live and (stored[1] ~= session.epoch or stored[2] ~= session.version) then return true end
    if not session.live and stored[1] then return true end
    for _, journal in ipairs(session.journals) do
      if redis.call('HGET', root .. 'j:' .. journal.name, 'ep') ~= journal.epoch then return true end
    end
  end
  return false
end
if has_moved() then return {'moved'} end

local function drop_versions(mid, versions)
  for _, version in ipairs(versions) do
    local name = mid .. '.' .. version
    redis.call('DEL', documents.history_key(name))
    redis.call('ZREM', root .. 'mh:' .. mid, version)
    redis.call('SREM', root .. 'bare', name)
  end
end
-- While an undo can restore a memory, other owners cannot use its id: see `memories/owners`.
local function keep_ids(mid)
  local owner = keeps and owners.owner_of(mid)
  if not owner then return end
  for _, name in ipairs({mid, unpack(aliases.names_of(mid))}) do
    redis.call('SET', root .. 'fo:' .. name, owner, 'EX', undo_seconds)
    kept_copy.keep('o ' .. name, '1')
  end
end
local function take_memory(memory)
  keep_ids(memory.mid)
  kept_copy.keep_memory(memory.mid)
  kept_copy.keep_position(memory.order, memory.mid)
  kept_copy.keep_positions(memory.positions)
  local used = redis.call('HGET', root .. 'use', memory.mid)
  if used then kept_copy.keep_field('use', memory.mid, used, nil) end
  if memory.order ~= '' then message_order.remove(memory.order, memory.mid) end
  for order, message in string.gmatch(memory.positions, '([^\n]+) (%x+)') do
    if aliases.target_of(message) == memory.mid then message_order.remove(order, message) end
  end
  deletion.delete(memory.mid)
end
local function set_field(key, name, before, after)
  kept_copy.keep_field(key, name, before, after)
  if after then redis.call('HSET', root .. key, name, after) else redis.call('HDEL', root .. key, name) end
end
-- Replaces or removes entries by their number. An undo restores all but `requests`.
local function strike(key, entries, requests)
  local GONE = '\0gone'
  for i, entry in ipairs(redis.call('LRANGE', root .. key, 0, -1)) do
    local number = string.match(entry, '^%-?(%d+) ')
    local after = entries[number]
    if after then
      if not requests[number] then kept_copy.keep('e ' .. key .. ' ' .. number, cjson.encode({entry, after})) end
      redis.call('LSET', root .. key, i - 1, after ~= '' and after or GONE)
    end
  end
  redis.call('LREM', root .. key, 0, GONE)
end
local function take_from_session(session)
  local meta = 'w:' .. session.sid
  if session.live then
    strike(meta .. ':m', session.entries, {})
    redis.call('HINCRBY', root .. meta, 'mt', session.fewer_tokens)
    redis.call('HINCRBY', root .. meta, 'v', 1)
    if session.summary then
      for _, name in ipairs({'ctx', 'ct'}) do
        local before = redis.call('HGET', root .. meta, name)
        if before then set_field(meta, name, before, nil) end
      end
    end
    if session.memories then set_field(meta, 'mems', redis.call('HGET', root .. meta, 'mems'), session.memories) end
    kept_copy.keep('h ' .. session.sid, clock.us_text())
    kept_copy.keep('b ' .. session.sid, redis.call('HGET', root .. meta, 'ca'))
    redis.call('HSET', root .. meta, 'hd', clock.us_text(), 'ua', clock.us_text(), 'ep', clock.us_text())
  end
  for _, id in ipairs(session.own) do
    local before = redis.call('HGET', root .. 'j:' .. session.sid .. ':o', id)
    if before then set_field('j:' .. session.sid .. ':o', id, before, nil) end
  end
  for _, journal in ipairs(session.journals) do
    local cursors = redis.call('HMGET', root .. 'j:' .. journal.name, 'jp', 'je')
    kept_copy.keep('j ' .. journal.name, (cursors[1] or '0') .. ' ' .. (cursors[2] or '0'))
    strike('j:' .. journal.name .. ':l', journal.entries, journal.asked)
    redis.call('HSET', root .. 'j:' .. journal.name, 'ep', clock.us_text())
  end
  outbox.mark_due(session_due, clock.ms, session.sid)
end
for _, memory in ipairs(plan.gone) do take_memory(memory) end
for _, memory in ipairs(plan.dropped) do
  kept_copy.keep_memory(memory.mid)
  kept_copy.keep('p ' .. memory.mid, memory.expect)
  drop_versions(memory.mid, memory.versions)
end
for _, change in ipairs(plan.fields) do set_field(unpack(change, 1, 4)) end
for _, id in ipairs(plan.proposals) do
  kept_copy.keep('d ch:' .. id, redis.call('DUMP', root .. 'ch:' .. id))
  kept_copy.keep('c ' .. id, '1')
  deletion.delete_change(id)
end
for _, session in ipairs(plan.sessions) do take_from_session(session) end
if keeps then
  redis.call('HSET', receipt, unpack(header))
  redis.call('EXPIRE', receipt, undo_seconds)
  redis.call('ZADD', receipts, clock.ms + undo_seconds * 1000, name)
  redis.call('ZREMRANGEBYSCORE', receipts, '-inf', clock.ms)
  redis.call('EXPIRE', receipts, undo_seconds)
end
follow_marks.write()
outbox.wake_dispatcher(wake)
return {'ok'}
