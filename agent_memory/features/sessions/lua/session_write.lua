#!lua
-- Writes a session (`mode` "put" replaces, "append" adds), and decides which messages are new and what work is due.
--   ttl                 seconds; -1 for none
--   window              tokens that the session's messages may have; without it, the session's own or `default_window`
--   summarize_ratio     share of the window above which the session needs a summary; 0 for never
--   extract_after_ms    how long extraction waits for more messages; -1 if extraction is off
--   extract_within_ms   how long extraction waits at most
--   extract_tokens      tokens that make extraction due at once
--   remembered_ids      how many identities of dropped messages stay known
--   fed_back            some of the messages repeat a memory prompt
--   updated_at          time of the change (µs), if it is not now
--   fields              {create, doc, set: [field, value…], unset: [field…], to_promote, memories: see `own_memories`,
--                       empty: [positions of messages that the session must have already],
--                       distinct_ids: refuse an id that the session has with other words; in a PUT, only if that id
--                       was replaced by another one before,
--                       agents: the agents in the writer's reach, if it is limited,
--                       agent: the tag of the session's agent from now on ("": none), if the write sets it,
--                       replaces: an append replaces the stored session,
--                       mids: for each message of an append, the mid that its memory gets, or ""}
--   new_messages        for each message: identity, tokens, 1 if it is promoted, 2 if only a PUT that changes its text
--                       promotes it, or 0, JSON of its text, and JSON of its content beside the text, or ""
-- `user_waiting` and `outboxes` (only with `replaces`) are as in `session_delete.lua`.
-- KEYS: meta, messages, ids, doc, journal, journal_list, journal_own, dead_batches, session_due, extraction_due, wake, user_waiting, outboxes...
-- ARGV: root, sid, mode, if_match?, ttl: number, window: number?, default_window: number, summarize_ratio: number, summary?, strategy?
-- ARGV: extract_after_ms: number, extract_within_ms: number, extract_tokens: number?, remembered_ids: number
-- ARGV: fed_back: flag, updated_at?, guard: json, fields: json, new_messages...
-- -> {"ok", version, tokens, messages, added, epoch, created (µs), creation time from the caller or "",
--     [position, JSON of the stored content beside the text that stays…]},
--    {"mismatch", version or "0"}, {"empty", position}, {"reused", positions…}, {"remembered", positions…},
--    {"taken", position among the memories to promote} or {"agent"}
local clock = require("storage/clock")
local outbox = require("storage/outbox")
local chunks = require("storage/chunks")
local erasures = require("storage/erasures")
local owners = require("memories/owners")
local own_memories = require("sessions/own_memories")
local ending = require("sessions/ending")
local put = mode == 'put'
local now = clock.us_text()
local stored = redis.call('HMGET', meta, 'v', 'ep', 'mt', 'ttl', 'ctx', 'ca', 'cw', 'mx', 'ag')
erasures.refuse(guard, stored[9])
local exists, epoch, stored_tokens, stored_ttl, stored_summary, created, stored_window, has_extras, agent = unpack(stored, 1, 9)

-- True if the session names an agent out of the writer's reach.
local function of_another_agent()
  if not fields.agents or not agent then return false end
  for _, reached in ipairs(fields.agents) do if reached == agent then return false end end
  return true
end
-- Returns the reply if the write is refused, or nil.
local function refusal()
  if of_another_agent() then return {'agent'} end
  if if_match == 'absent' then
    if exists then return {'mismatch', exists} end
  elseif if_match == '*' then
    if not exists then return {'mismatch', '0'} end
  elseif if_match and if_match ~= (exists or '0') then
    return {'mismatch', exists or '0'}
  end
  for _, position in ipairs(fields.empty or {}) do
    if not exists or not redis.call('ZSCORE', ids, ARGV[new_messages_at + 5 * position]) then return {'empty', position} end
  end
  return nil
end
-- Returns the positions of messages whose id belongs to another message. A PUT may correct a message under its id,
-- unless the message was stored under another id before (`message_ids.py`).
local function reused_ids()
  local positions = {}
  if not fields.distinct_ids or not exists or fields.replaces then return positions end
  for i = new_messages_at, #ARGV, 5 do
    local id, words = string.match(ARGV[i], '^([^\n]*)\n([^\n]*)')
    if not redis.call('ZSCORE', ids, id .. '\n' .. words) and redis.call('ZSCORE', ids, id .. '\n') then
      local other = id .. '~' .. string.sub(words, 1, 12) .. '\n' .. words
      if not put or redis.call('ZSCORE', ids, other) then positions[#positions + 1] = (i - new_messages_at) / 5 end
    end
  end
  return positions
end
local reused = reused_ids()
if #reused > 0 then return {'reused', unpack(reused)} end
local refused = refusal()
if refused then return refused end
-- True if a memory belongs to the session's owner, and names this session.
local function is_of_session(mid)
  local memory, owner = redis.call('HMGET', root .. 'm:' .. mid, 's', 'ns', 'u'), {}
  for i = 1, #fields.doc, 2 do owner[fields.doc[i]] = fields.doc[i + 1] end
  return memory[1] == owner.s and (memory[2] or '') == (owner.ns or '') and (memory[3] or '') == (owner.u or '')
end
-- Returns the positions of messages that are new to the session, but whose id has a memory from a deleted session.
local function remembered()
  local positions = {}
  for position, mid in ipairs(fields.mids or {}) do
    local id = string.match(ARGV[new_messages_at + 5 * (position - 1)], '^[^\n]*\n')
    local is_known = exists and redis.call('ZSCORE', ids, id)
    if mid ~= '' and not is_known and is_of_session(mid) then positions[#positions + 1] = position - 1 end
  end
  return positions
end
local known = remembered()
if #known > 0 then return {'remembered', unpack(known)} end
local new_memories, unchanged = own_memories.new_ones(fields.to_promote, fields.memories, put and exists and meta)
for _, position in ipairs(new_memories) do
  local owner = owners.owner_of(fields.to_promote[position + 2])
  if owner and owner ~= fields.to_promote[position + 3] then return {'taken', (position - 1) / 5} end
end

if fields.replaces and exists then
  ending.end_session()
  exists, stored_tokens, stored_ttl, stored_summary, created, stored_window, has_extras = nil, nil, nil, nil, nil, nil, nil
end
if not exists then
  epoch = now
  created = created or now
  redis.call('DEL', messages, ids)
  redis.call('HSET', meta, 'v', '0', 'ep', epoch, 'hd', epoch, 'mt', '0', 'ca', created, unpack(fields.create))
  redis.call('HSET', doc, 'c', created, unpack(fields.doc))
end
if fields.agent and fields.agent ~= (redis.call('HGET', doc, 'ag') or '') then
  if fields.agent == '' then redis.call('HDEL', doc, 'ag') else redis.call('HSET', doc, 'ag', fields.agent) end
end
local last_seq = tonumber(redis.call('HGET', journal, 'sq') or '-1')
if last_seq < 0 then
  local newest = redis.call('ZREVRANGE', ids, 0, 0, 'WITHSCORES')
  last_seq = tonumber(newest[2] or '0')
  local at = string.format('%.0f', last_seq)
  redis.call('DEL', journal_list)
  redis.call('HSET', journal, 'sq', at, 'jb', at, 'jp', at, 'je', at, 'ep', epoch, unpack(fields.create))
elseif not exists then
  redis.call('HSET', journal, 'ep', epoch)
end

-- Messages that a program sends back with a memory prompt are stored, but not remembered again.
local said_before = {}
local function words_of(identity) return string.match(identity, '^[^\n]*\n([^\n]*)') end
if fed_back then
  for _, identity in ipairs(redis.call('ZRANGE', ids, 0, -1)) do said_before[words_of(identity) or ''] = true end
end
local old_entries = put and redis.call('LRANGE', messages, 0, -1) or {}
-- A message keeps its writer, the last field of its text, when a PUT sends it again.
local writers = {}
for _, entry in ipairs(old_entries) do
  local from, beside = string.find(entry, ',"w":"', 1, true), string.find(entry, ',"x":{', 1, true)
  if from and (not beside or from < beside) then
    writers[string.match(entry, '^%d+')] = string.sub(entry, from, (beside or #entry) - 1)
  end
end
local function with_writer(text, writer)
  local from = string.find(text, ',"w":"', 1, true)
  return string.sub(text, 1, (from or #text) - 1) .. (writer or '') .. '}'
end
-- Stored content beside texts: programs that know only text send the messages back without it.
local extras, restored = {}, {}
for _, entry in ipairs(has_extras and old_entries or {}) do
  local from = string.find(entry, ',"x":{', 1, true)
  if from then
    local seq, tokens = string.match(entry, '^(%d+) (%d+) ')
    extras[seq] = {tokens, string.sub(entry, from + 5, -2)}
  end
end
local entries, journal_entries, tokens_written, added, tokens_to_extract = {}, {}, 0, 0, 0
for i = new_messages_at, #ARGV, 5 do
  local identity, tokens, promoted, text, extra = unpack(ARGV, i, i + 4)
  local seq = redis.call('ZSCORE', ids, identity)
  -- A PUT may change a message back to words that it had before.
  local latest = seq and put and redis.call('ZSCORE', ids, string.match(identity, '^[^\n]*\n'))
  local is_stored = seq and (not latest or latest == seq)
  if not is_stored then
    -- A program sends back the flag of the text that it read. It does not count for other text.
    if promoted == '2' and put and redis.call('ZSCORE', ids, string.match(identity, '^[^\n]*\n')) then promoted = '1' end
    last_seq = last_seq + 1
    seq = last_seq
    redis.call('ZADD', ids, seq, identity)
    redis.call('ZADD', ids, seq, string.match(identity, '^[^\n]*\n'))
    if extra ~= '' then redis.call('ZADD', ids, seq, string.match(identity, '^[^\n]*\n[^\n]*')) end
    added = added + 1
  end
  if put or not is_stored then
    seq = string.format('%.0f', seq)
    if extra == '' and extras[seq] then
      tokens, extra = extras[seq][1], extras[seq][2]
      restored[#restored + 1] = (i - new_messages_at) / 5
      restored[#restored + 1] = extra
    end
    if is_stored then text = with_writer(text, writers[seq]) end
    local entry = seq .. ' ' .. tokens .. ' ' .. text
    if not is_stored then
      local is_promoted = promoted == '1' and not (fed_back and said_before[words_of(identity) or '-'])
      if is_promoted then tokens_to_extract = tokens_to_extract + tonumber(tokens) end
      journal_entries[#journal_entries + 1] = (is_promoted and '' or '-') .. entry
    end
    if extra ~= '' then
      entry = string.sub(entry, 1, -2) .. ',"x":' .. extra .. '}'
      redis.call('HSET', meta, 'mx', '1')
    end
    entries[#entries + 1] = entry
    tokens_written = tokens_written + tonumber(tokens)
  end
end

-- True if a PUT keeps all stored messages and the summary, so that it only adds messages.
local function only_adds()
  if #old_entries > #entries or (stored_summary or '') ~= (summary or '') then return false end
  for i = 1, #old_entries do
    if string.match(old_entries[i], '^%d+ ') ~= string.match(entries[i], '^%d+ ') then return false end
  end
  return true
end
-- Forgets old identities: a program that sends a sliding window of messages would make them grow without end.
local function forget_old_ids()
  -- A message has at most three entries: its id alone, with its words, and with its content beside the text.
  local spare = redis.call('ZCARD', ids) - 3 * (#entries + remembered_ids)
  if spare <= remembered_ids then return end
  local current = {}
  for _, entry in ipairs(entries) do current[string.match(entry, '^%d+')] = true end
  local oldest = redis.call('ZRANGE', ids, 0, spare + 3 * #entries - 1, 'WITHSCORES')
  for i = 1, #oldest, 2 do
    if spare > 0 and not current[string.format('%.0f', oldest[i + 1])] then
      redis.call('ZREM', ids, oldest[i])
      spare = spare - 1
    end
  end
end
local total_tokens = tokens_written
if put then
  if exists and not only_adds() then redis.call('HSET', meta, 'hd', now) end
  redis.call('DEL', messages)
  forget_old_ids()
else
  total_tokens = total_tokens + tonumber(stored_tokens or '0')
end
chunks.call('RPUSH', messages, entries)
if #journal_entries > 0 then
  chunks.call('RPUSH', journal_list, journal_entries)
  redis.call('HSET', journal, 'sq', string.format('%.0f', last_seq))
end
local promotions = {}
for _, position in ipairs(new_memories) do
  promotions[#promotions + 1] = fields.to_promote[position]
  promotions[#promotions + 1] = string.sub(fields.to_promote[position + 1], 1, -2) .. ',"at":"' .. now .. '"}'
end
chunks.call('HSET', journal_own, promotions)
if put then own_memories.note(fields.memories, meta, unchanged) end
if strategy then redis.call('HSET', journal, 'st', strategy) end
local version = tonumber(exists or '0')
if put or added > 0 or not exists then
  if #fields.set > 0 then redis.call('HSET', meta, unpack(fields.set)) end
  if #fields.unset > 0 then redis.call('HDEL', meta, unpack(fields.unset)) end
  version = version + 1
  local tokens_text = string.format('%.0f', total_tokens)
  redis.call('HSET', meta, 'v', string.format('%.0f', version), 'mt', tokens_text, 'ua', updated_at or now)
end

local count = redis.call('LLEN', messages)
local lifetime = put and ttl or tonumber(stored_ttl or '-1')
for _, key in ipairs({meta, messages, ids, doc}) do
  if lifetime >= 0 then redis.call('EXPIRE', key, lifetime) elseif put then redis.call('PERSIST', key) end
end
local cursors = redis.call('HMGET', journal, 'jp', 'je')
local idle = math.min(tonumber(cursors[1]), tonumber(cursors[2])) >= last_seq and redis.call('EXISTS', journal_own) == 0
for _, key in ipairs({journal, journal_list}) do
  -- Pending work outlives its session. A journal without work expires soon after the session.
  if idle and lifetime >= 0 then redis.call('EXPIRE', key, lifetime + 60) else redis.call('PERSIST', key) end
end

local promotes = #journal_entries > 0 or #new_memories > 0
local window_now = window or (not put and tonumber(stored_window)) or default_window
if promotes or (summarize_ratio > 0 and total_tokens > math.floor(window_now * summarize_ratio)) then
  outbox.mark_due(session_due, clock.ms, sid)
  outbox.wake_dispatcher(wake)
end
if promotes and user_waiting ~= meta then redis.call('ZADD', user_waiting, clock.ms, sid) end
if extract_after_ms >= 0 and #journal_entries > 0 then
  local waits_since = redis.call('HGET', journal, 'x0')
  if not waits_since then
    waits_since = clock.ms
    redis.call('HSET', journal, 'x0', string.format('%.0f', clock.ms))
  end
  local at = math.min(clock.ms + extract_after_ms, tonumber(waits_since) + extract_within_ms)
  -- Extraction is due at once for a full batch, or if the session ends.
  local enough = extract_tokens and redis.call('HINCRBY', journal, 'xt', tokens_to_extract) >= extract_tokens
  if enough or (put and ttl == 0) then
    at = clock.ms
    outbox.wake_dispatcher(wake)
  end
  redis.call('ZADD', extraction_due, at, sid)
end
return {
  'ok', string.format('%.0f', version), string.format('%.0f', total_tokens), count, added, epoch, created,
  redis.call('HGET', meta, 'co') or '', restored,
}
