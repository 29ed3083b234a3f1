#!lua flags=allow-oom
-- Deletes memories for good, with all that is known of them: versions, evidence, other names, changes. `memories`: per memory its mid, the
-- version that it must have or "", its order's key or "", and (lines of an order's key and a mid) where messages that are its evidence stand.
-- KEYS: due, tries, reasons, dead
-- ARGV: root, tombstone_seconds, reach: number, memories...
-- -> per memory 1 deleted, 0 not there or changed
local clock = require("storage/clock")
local outbox = require("storage/outbox")
local documents = require("memories/documents")
local standings = require("memories/standings")
local aliases = require("memories/aliases")
local message_order = require("memories/message_order")
local function delete_change(id)
  local change = root .. 'ch:' .. id
  for mid in string.gmatch(redis.call('HGET', change, 'ms') or '', '%x+') do redis.call('ZREM', root .. 'mh:' .. mid, 'c' .. id) end
  redis.call('DEL', change)
end
local function delete(mid)
  local ledger = root .. 'mh:' .. mid
  local members = redis.call('ZRANGE', ledger, 0, -1)
  redis.call('DEL', ledger)
  for _, member in ipairs(members) do
    local kind, rest = string.sub(member, 1, 1), string.sub(member, 2)
    if kind == 'c' then
      delete_change(rest)
    elseif kind == 'a' then
      redis.call('DEL', root .. 'al:' .. rest)
      delete(rest)
    else
      redis.call('DEL', documents.history_key(mid .. '.' .. member))
      redis.call('SREM', root .. 'bare', mid .. '.' .. member)
    end
  end
  local key = documents.key_of(mid)
  if key then standings.unlink(mid, redis.call('HGET', key, 'bk')) end
  redis.call('DEL', documents.memory_key(mid), documents.vector_key(mid), documents.history_key(mid), root .. 'ev:' .. mid)
  redis.call('HDEL', root .. 'use', mid)
  redis.call('SREM', root .. 'use:unfolded', mid)
  redis.call('SET', root .. 'mt:' .. mid, clock.us_text(), 'EX', tombstone_seconds)
  outbox.clear_mark(mid, due, tries, reasons, dead)
end
local deleted = {}
for i = memories_at, #ARGV, 4 do
  local mid, version, own_order, positions = unpack(ARGV, i, i + 3)
  local key, was_there = documents.key_of(mid), 0
  if version == '' or (key and redis.call('HGET', key, 'n') == version) then
    was_there = key and 1 or 0
    if own_order ~= '' then message_order.remove(own_order, mid) end
    for order, message in string.gmatch(positions, '([^\n]+) (%x+)') do
      -- One that is a memory of its own, cited by this, stays in its position.
      if aliases.target_of(message) == mid then message_order.remove(order, message) end
    end
    delete(mid)
  end
  deleted[#deleted + 1] = was_there
end
return deleted
