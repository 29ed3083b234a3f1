-- Permanently deletes a memory, with its versions, evidence, aliases and changes.
-- NEEDS: root, due, tries, reasons, dead
local clock = require("storage/clock")
local outbox = require("storage/outbox")
local documents = require("memories/documents")
local follow_marks = require("memories/follow_marks")
local standings = require("memories/standings")
local function delete_change(id)
  local change = root .. 'ch:' .. id
  for mid in string.gmatch(redis.call('HGET', change, 'ms') or '', '%x+') do redis.call('ZREM', root .. 'mh:' .. mid, 'c' .. id) end
  redis.call('DEL', change)
end
local function delete(mid)
  follow_marks.mark(mid)
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
  redis.call('DEL', documents.memory_key(mid), documents.history_key(mid), root .. 'ev:' .. mid, unpack(documents.vector_keys(mid)))
  redis.call('HDEL', root .. 'use', mid)
  redis.call('SREM', root .. 'use:unfolded', mid)
  redis.call('SET', root .. 'mt:' .. mid, clock.us_text(), 'EX', documents.TOMBSTONE_SECONDS)
  outbox.clear_mark(mid, due, tries, reasons, dead)
end
return {delete = delete, delete_change = delete_change}
