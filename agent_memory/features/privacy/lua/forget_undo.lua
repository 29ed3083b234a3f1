#!lua
-- Restores the memories of a receipt that nothing newer replaced, and empties the receipt.
-- Refuses while an owner is being erased.
-- KEYS: due, tries, reasons, dead, session_due, wake, receipt
-- ARGV: root, reach: number, guard: json
-- -> {"gone"}, {"undone", the first answer} or {"ok", answer}
--    answer: "<restored memories> <restored messages> <memories not restored>"
local clock = require("storage/clock")
local outbox = require("storage/outbox")
local documents = require("memories/documents")
local follow_marks = require("memories/follow_marks")
local standings = require("memories/standings")
local aliases = require("memories/aliases")
local message_order = require("memories/message_order")
local deletion = require("memories/deletion")
local kept_keys = require("privacy/kept_keys")
local undone = redis.call('HMGET', receipt, 't', 'undone')
if not undone[1] then return {'gone'} end
if undone[2] then return {'undone', undone[2]} end
local receipt_fields = kept_keys.fields_of(receipt)
local function each(pattern, act) kept_keys.each(receipt_fields, pattern, act) end
kept_keys.refuse(receipt_fields, guard)

-- True if something newer has the memory's id, slot or words.
local function is_taken(mid)
  local version = receipt_fields['p ' .. mid]
  local key = documents.key_of(mid)
  if version then return not key or redis.call('HGET', key, 'n') ~= version end
  return key or aliases.target_of(mid)
end
local function restore_key(name)
  local dump = receipt_fields['d ' .. name]
  if dump then redis.call('RESTORE', root .. name, 0, dump, 'REPLACE') end
end
local function holder_of_slot(mid, standing)
  if not standing then return nil end
  local holders, kin, slot = standings.parse(standing)
  for _, name in ipairs({kin, slot}) do
    local holder = name ~= '' and redis.call('HGET', holders, name)
    if holder and holder ~= mid and documents.key_of(holder) then return holder end
  end
  return nil
end
local function restore_changes(mid)
  for _, member in ipairs(redis.call('ZRANGE', root .. 'mh:' .. mid, 0, -1, 'WITHSCORES')) do
    local id = string.match(member, '^c(.+)$')
    if id then
      local at = redis.call('ZSCORE', root .. 'mh:' .. mid, member)
      for other in string.gmatch(redis.call('HGET', root .. 'ch:' .. id, 'ms') or '', '%x+') do
        if documents.key_of(other) then redis.call('ZADD', root .. 'mh:' .. other, at, member) end
      end
    end
  end
end
local function restore_memory(mid, keys)
  if is_taken(mid) then return false end
  if receipt_fields['p ' .. mid] then deletion.delete(mid) end
  for name in string.gmatch(keys, '%S+') do restore_key(name) end
  local key = documents.key_of(mid)
  local standing = key and redis.call('HGET', key, 'bk')
  if key == documents.memory_key(mid) then
    if holder_of_slot(mid, standing) then
      deletion.delete(mid)
      return false
    end
    standings.link(mid, standing)
  end
  for name in string.gmatch(keys, '%S+') do
    local before = string.match(name, '^m[h]?:(%x+)$')
    if before then redis.call('DEL', root .. 'mt:' .. before) end
  end
  redis.call('DEL', root .. 'mt:' .. mid)
  restore_changes(mid)
  follow_marks.mark(mid)
  if key then outbox.mark_due(due, clock.ms, mid) end
  return true
end

-- Names of the restored data, without its text: see `forget_show.lua`.
local names = {}
local function note(...) names[#names + 1] = table.concat({...}, ' ') end
local is_restored = {}
local back, messages_back, left = 0, 0, 0
each('^k (%x+)$', function(mid, keys)
  if restore_memory(mid, keys) then
    is_restored[mid] = true
    back = back + 1
    note('m', mid)
  else
    left = left + 1
  end
end)
each('^z (%S+) (%x+)$', function(order, mid, score)
  if documents.key_of(mid) or aliases.target_of(mid) then message_order.insert(order, mid, score, 0) end
end)
each('^c (%S+)$', function(id)
  restore_key('ch:' .. id)
  for mid in string.gmatch(redis.call('HGET', root .. 'ch:' .. id, 'ms') or '', '%x+') do
    if documents.key_of(mid) then redis.call('ZADD', root .. 'mh:' .. mid, clock.us, 'c' .. id) end
  end
end)
local function is_there(key, field)
  if key == 'use' then return is_restored[field] end
  local mid, sid = string.match(key, '^ev:(%x+)$'), string.match(key, '^[wj]:(%x+)')
  if mid then return documents.key_of(mid) end
  if sid and not kept_keys.is_same_session(receipt_fields, sid) then return false end
  -- The list of waiting memories may be empty, but needs its journal.
  return redis.call('EXISTS', root .. string.gsub(key, ':o$', '')) == 1
end
-- True if the session's summary and first messages are unchanged since forgetting.
local function is_as_left(key)
  local sid = string.match(key, '^w:(%x+)')
  return not sid or redis.call('HGET', root .. 'w:' .. sid, 'hd') == receipt_fields['h ' .. sid]
end
each('^f (%S+) (.+)$', function(key, field, json)
  if is_there(key, field) then
    local change = cjson.decode(json)
    local now = redis.call('HGET', root .. key, field)
    local summary = field == 'ctx' or field == 'ct'
    if now == change[2] and (not summary or is_as_left(key)) then
      redis.call('HSET', root .. key, field, change[1])
      if field == 'ctx' then note('c', string.match(key, '^w:(%x+)$')) end
    end
    local waiting = string.match(key, '^j:(%x+):o$')
    if waiting then outbox.mark_due(session_due, clock.ms, waiting) end
  end
end)
local function number_of(entry) return tonumber(string.match(entry, '^%-?(%d+) ')) end
local function tokens_of(entry) return entry == '' and 0 or tonumber(string.match(entry, '^%-?%d+ (%d+) ')) end
-- Restores an entry: in place of its emptied rest, or between its neighbors.
local function put_back(key, number, before, after)
  local list = redis.call('LRANGE', root .. key, 0, -1)
  if after ~= '' then
    for i, entry in ipairs(list) do
      if entry == after then
        redis.call('LSET', root .. key, i - 1, before)
        return true
      end
    end
    return false
  end
  local follower
  for _, entry in ipairs(list) do
    if number_of(entry) == number then return false end
    if number_of(entry) > number then
      follower = follower or entry
    end
  end
  if not is_as_left(key) and (#list == 0 or number_of(list[1]) > number) then return false end
  if follower then redis.call('LINSERT', root .. key, 'BEFORE', follower, before) else redis.call('RPUSH', root .. key, before) end
  return true
end
-- Moves the cursors back, so that skipped work waits again. Promoting a message twice changes nothing.
local function wait_again(journal, number)
  local then_at = {string.match(receipt_fields['j ' .. journal] or '', '^(%d+) (%d+)$')}
  for i, cursor in ipairs({'jp', 'je'}) do
    local now_at = tonumber(redis.call('HGET', root .. 'j:' .. journal, cursor) or '0')
    if then_at[i] and tonumber(then_at[i]) < number and now_at >= number then
      redis.call('HSET', root .. 'j:' .. journal, cursor, string.format('%.0f', number - 1))
    end
  end
end
each('^e (%S+) (%d+)$', function(key, number, json)
  local sid, session = string.match(key, '^%a:([%x]+)'), string.match(key, '^w:(%x+):m$')
  local is_same = not session or kept_keys.is_same_session(receipt_fields, session)
  if is_same and redis.call('EXISTS', root .. string.match(key, '^(.+):%a$')) == 1 then
    local change = cjson.decode(json)
    local is_back = put_back(key, tonumber(number), change[1], change[2])
    if is_back and not session then wait_again(string.match(key, '^j:(.+):l$'), tonumber(number)) end
    if is_back and session then
      messages_back = messages_back + 1
      note('s', session, redis.sha1hex(change[1]))
      redis.call('HINCRBY', root .. 'w:' .. session, 'mt', tokens_of(change[1]) - tokens_of(change[2]))
      local ttl = redis.call('TTL', root .. 'w:' .. session)
      if ttl > 0 then redis.call('EXPIRE', root .. key, ttl) end
    end
  end
  if sid then outbox.mark_due(session_due, clock.ms, sid) end
end)
each('^h (%x+)$', function(session)
  if kept_keys.is_same_session(receipt_fields, session) and redis.call('EXISTS', root .. 'w:' .. session) == 1 then
    redis.call('HINCRBY', root .. 'w:' .. session, 'v', 1)
    redis.call('HSET', root .. 'w:' .. session, 'hd', clock.us_text(), 'ua', clock.us_text())
  end
end)
each('^o (%x+)$', function(mid) redis.call('DEL', root .. 'fo:' .. mid) end)
local fields = {}
for name in pairs(receipt_fields) do if string.find(name, ' ', 1, true) then fields[#fields + 1] = name end end
for i = 1, #fields, 1000 do redis.call('HDEL', receipt, unpack(fields, i, math.min(i + 999, #fields))) end
local answer = string.format('%d %d %d', back, messages_back, left)
redis.call('HSET', receipt, 'undone', answer, 'back', table.concat(names, '\n'))
follow_marks.write()
outbox.wake_dispatcher(wake)
return {'ok', answer}
