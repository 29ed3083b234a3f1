#!lua
-- Gives a memory another name in keys, with all that is known of it. The old name stays another name of it. `documents_read`: per document
-- of it, its name without the mid ("m", "h" or "<version>" for "m:", "h:" and "h:….<version>"), its record as it was read, and its record
-- with the new id.
-- KEYS: due, tries, reasons, dead, wake
-- ARGV: root, old, new, order?, documents_read...
-- -> 1 done, 0 it changed meanwhile
local clock = require("storage/clock")
local outbox = require("storage/outbox")
local documents = require("memories/documents")
local follow_marks = require("memories/follow_marks")
local standings = require("memories/standings")
local function key_of_document(name, mid)
  if name == 'm' then return documents.memory_key(mid) end
  return documents.history_key(name == 'h' and mid or mid .. '.' .. name)
end
if documents.key_of(new) then return 0 end
for i = documents_read_at, #ARGV, 3 do
  if redis.call('HGET', key_of_document(ARGV[i], old), 'j') ~= ARGV[i + 1] then return 0 end
end
local from = documents.key_of(old)
local is_current = from == documents.memory_key(old)
local known = from and redis.call('HMGET', from, 'bk', 'h') or {}
local standing, digest = known[1], known[2]
if is_current then standings.unlink(old, standing) end
for i = documents_read_at, #ARGV, 3 do
  local name = ARGV[i]
  redis.call('HSET', key_of_document(name, old), 'j', ARGV[i + 2])
  redis.call('RENAME', key_of_document(name, old), key_of_document(name, new))
  if redis.call('SREM', root .. 'bare', old .. '.' .. name) == 1 then redis.call('SADD', root .. 'bare', new .. '.' .. name) end
end
for _, kind in ipairs({'v:', 'ev:', 'mh:'}) do
  if redis.call('EXISTS', root .. kind .. old) == 1 then redis.call('RENAME', root .. kind .. old, root .. kind .. new) end
end
for _, member in ipairs(redis.call('ZRANGE', root .. 'mh:' .. new, 0, -1)) do
  local kind, rest = string.sub(member, 1, 1), string.sub(member, 2)
  if kind == 'a' then
    local alias_digest = string.match(redis.call('GET', root .. 'al:' .. rest) or '', ' (.*)$')
    redis.call('SET', root .. 'al:' .. rest, new .. ' ' .. (alias_digest or ''))
  elseif kind == 'c' then
    for _, field in ipairs({'i', 'ms', 'p'}) do
      local text = redis.call('HGET', root .. 'ch:' .. rest, field)
      if text then redis.call('HSET', root .. 'ch:' .. rest, field, (string.gsub(text, old, new))) end
    end
  end
end
local merged = redis.call('GET', root .. 'al:' .. old)
if merged then
  redis.call('SET', root .. 'al:' .. new, merged)
  redis.call('ZADD', root .. 'mh:' .. string.match(merged, '^%S+'), clock.us, 'a' .. new)
elseif from then
  redis.call('SET', root .. 'al:' .. old, new .. ' ' .. (digest or ''))
  redis.call('ZADD', root .. 'mh:' .. new, clock.us, 'a' .. old)
end
local tombstone_seconds = redis.call('TTL', root .. 'mt:' .. old)
if tombstone_seconds > 0 and not from then redis.call('SET', root .. 'mt:' .. new, '1', 'EX', tombstone_seconds) end
local usage = redis.call('HGET', root .. 'use', old)
if usage then
  redis.call('HSET', root .. 'use', new, usage)
  redis.call('HDEL', root .. 'use', old)
end
if redis.call('SREM', root .. 'use:unfolded', old) == 1 then redis.call('SADD', root .. 'use:unfolded', new) end
local score = order and redis.call('ZSCORE', order, old)
if score then
  redis.call('ZREM', order, old)
  redis.call('ZADD', order, score, new)
end
follow_marks.mark(old)
follow_marks.mark(new)
outbox.clear_mark(old, due, tries, reasons, dead)
if is_current then standings.link(new, standing) end
if from then
  outbox.mark_due(due, clock.ms, new)
  outbox.wake_dispatcher(wake)
end
follow_marks.write()
return 1
