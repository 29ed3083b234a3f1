"""The Lua of sessions; that of memories is in `memory_scripts.py`. Each script is one atomic change, a typed function in `lua.py`.

Common to all: time is Redis' own; headers are JSON; a write marks what it makes due in the outbox in the same script.
"""

from __future__ import annotations

from agent_memory.storage import owner_scripts
from agent_memory.storage.outbox_scripts import PRELUDE

# Writes a session: mode "put" replaces, "append" adds what is not there yet.
# KEYS meta, messages, ids, doc, journal, journal list, journal's memories, due:session, due:extraction, wake, the user's waiting sessions
#      (only with a user)
# ARGV header {mode, sid, im, create: [f, v…], set: [f, v…], unset: [f…], doc: [f, v…], ttl (s, -1 = none), cw?, dw (tokens),
#      ratio (0 = never summarize), xd (ms, -1 = off), xm (ms), keep (ids to remember), root,
#      own: [id, json, mid, owner, µs of its making if given…] (memories to promote), held: [id, mark, µs of its making…] (all memories),
#      st: strategy, mm? (most messages that the session may have), ua? (µs, the time of its change if not now),
#      xt? (tokens that wait for extraction and make it due at once), fed? (a memory prompt's messages are among these),
#      empty? (places of messages that must be known already)},
#      then per message: identity, tokens, journal? 1/0, json of its text, json of what stands beside it or ""
# -> {"ok", version, tokens, messages, added, epoch, created (µs), created as the caller said or "", [place, json of what it kept…]},
#    {"mismatch", version or "0"}, {"full", messages}, {"empty", place} or {"taken", place in `own`}
SESSION_WRITE = (
    PRELUDE
    + """
local h = cjson.decode(ARGV[1])
local R = h.root
"""
    + owner_scripts.OWNERS
    + owner_scripts.OWN_MEMORIES
    + """
local meta, msgs, ids, doc, jrn, jlist, own = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local m = redis.call('HMGET', meta, 'v', 'ep', 'mt', 'ttl', 'hd', 'ctx', 'ca', 'cw', 'mx')
local exists = m[1]
if h.im then
  if h.im == 'absent' then
    if exists then return {'mismatch', m[1]} end
  elseif h.im == '*' then
    if not exists then return {'mismatch', '0'} end
  elseif h.im ~= (m[1] or '0') then
    return {'mismatch', m[1] or '0'}
  end
end
local put = h.mode == 'put'
if h.mm then
  local news, held = (#ARGV - 1) / 5, 0
  if not put and exists then
    held = redis.call('LLEN', msgs)
    if held + news > h.mm then
      for i = 2, #ARGV, 5 do if redis.call('ZSCORE', ids, ARGV[i]) then news = news - 1 end end
    end
  end
  if news > 0 and held + news > h.mm then return {'full', held} end
end
for _, place in ipairs(h.empty or {}) do
  if not exists or not redis.call('ZSCORE', ids, ARGV[2 + 5 * place]) then return {'empty', place} end
end
local fresh, kept = news_of(h, put and exists and meta)
for i, place in ipairs(fresh) do
  local owner = owner_of(h.own[place + 2])
  if owner and owner ~= h.own[place + 3] then return {'taken', (place - 1) / 5} end
end
local ep, created = m[2], m[7]
if not exists then
  ep = string.format('%.0f', US)
  created = created or string.format('%.0f', US)
  redis.call('DEL', msgs, ids)
  redis.call('HSET', meta, 'v', '0', 'ep', ep, 'hd', ep, 'mt', '0', 'ca', created, unpack(h.create))
  redis.call('HSET', doc, 'c', created, unpack(h.doc))
end
local sq = tonumber(redis.call('HGET', jrn, 'sq') or '-1')
if sq < 0 then
  local top = redis.call('ZREVRANGE', ids, 0, 0, 'WITHSCORES')
  sq = tonumber(top[2] or '0')
  local at = string.format('%.0f', sq)
  redis.call('DEL', jlist)
  redis.call('HSET', jrn, 'sq', at, 'jb', at, 'jp', at, 'je', at, 'ep', ep, unpack(h.create))
elseif not exists then
  redis.call('HSET', jrn, 'ep', ep)
end
-- What a program put back with a memory prompt's messages was said before: it is shown again, but not remembered again.
local told = {}
if h.fed then
  for _, member in ipairs(redis.call('ZRANGE', ids, 0, -1)) do told[string.match(member, '^[^\\n]*\\n([^\\n]*)') or ''] = true end
end
local old = put and redis.call('LRANGE', msgs, 0, -1) or {}
-- What stands beside the texts of the messages that are there: programs that know texts only put messages back without it.
local beside, back = {}, {}
for _, entry in ipairs(m[9] and old or {}) do
  local from = string.find(entry, ',"x":{', 1, true)
  if from then
    local seq, tokens = string.match(entry, '^(%d+) (%d+) ')
    beside[seq] = {tokens, string.sub(entry, from + 5, -2)}
  end
end
local entries, journal, total, added, asked = {}, {}, 0, 0, 0
for i = 2, #ARGV, 5 do
  local tokens, more = ARGV[i + 1], ARGV[i + 4]
  local seq = redis.call('ZSCORE', ids, ARGV[i])
  local known = seq
  if not known then
    sq = sq + 1
    seq = sq
    redis.call('ZADD', ids, seq, ARGV[i])
    if more ~= '' then redis.call('ZADD', ids, seq, string.match(ARGV[i], '^[^\\n]*\\n[^\\n]*')) end
    added = added + 1
  end
  if put or not known then
    seq = string.format('%.0f', seq)
    if more == '' and beside[seq] then
      tokens, more = beside[seq][1], beside[seq][2]
      back[#back + 1] = (i - 2) / 5
      back[#back + 1] = more
    end
    local entry = seq .. ' ' .. tokens .. ' ' .. ARGV[i + 3]
    if not known then
      local again = h.fed and told[string.match(ARGV[i], '^[^\\n]*\\n([^\\n]*)') or '-']
      local wanted = ARGV[i + 2] == '1' and not again
      if wanted then asked = asked + tonumber(tokens) end
      journal[#journal + 1] = (wanted and '' or '-') .. entry
    end
    if more ~= '' then
      entry = string.sub(entry, 1, -2) .. ',"x":' .. more .. '}'
      redis.call('HSET', meta, 'mx', '1')
    end
    entries[#entries + 1] = entry
    total = total + tonumber(tokens)
  end
end
local changed = put or added > 0 or not exists
if put then
  local same = #old <= #entries and (m[6] or '') == (h.ctx or '')
  if same then
    for i = 1, #old do
      if string.match(old[i], '^%d+ ') ~= string.match(entries[i], '^%d+ ') then same = false break end
    end
  end
  if exists and not same then redis.call('HSET', meta, 'hd', string.format('%.0f', US)) end
  redis.call('DEL', msgs)
  -- A program that always sends a window of what was said must not leave the ids of everything behind.
  local spare = redis.call('ZCARD', ids) - #entries - h.keep
  if spare > h.keep then
    local here = {}
    for _, entry in ipairs(entries) do here[string.match(entry, '^%d+')] = true end
    local known = redis.call('ZRANGE', ids, 0, spare + #entries - 1, 'WITHSCORES')
    for i = 1, #known, 2 do
      if spare > 0 and not here[string.format('%.0f', known[i + 1])] then
        redis.call('ZREM', ids, known[i])
        spare = spare - 1
      end
    end
  end
else
  total = total + tonumber(m[3] or '0')
end
chunked('RPUSH', msgs, entries)
if #journal > 0 then
  chunked('RPUSH', jlist, journal)
  redis.call('HSET', jrn, 'sq', string.format('%.0f', sq))
end
local waiting = {}
for _, place in ipairs(fresh) do
  waiting[#waiting + 1] = h.own[place]
  waiting[#waiting + 1] = string.sub(h.own[place + 1], 1, -2) .. ',"at":"' .. string.format('%.0f', US) .. '"}'
end
chunked('HSET', own, waiting)
if put then hold(h, meta, kept) end
if h.st then redis.call('HSET', jrn, 'st', h.st) end
local v = tonumber(m[1] or '0')
if changed then
  if #h.set > 0 then redis.call('HSET', meta, unpack(h.set)) end
  if #h.unset > 0 then redis.call('HDEL', meta, unpack(h.unset)) end
  v = v + 1
  redis.call('HSET', meta, 'v', string.format('%.0f', v), 'mt', string.format('%.0f', total), 'ua', h.ua or string.format('%.0f', US))
end
local count = redis.call('LLEN', msgs)
local ttl = put and h.ttl or tonumber(m[4] or '-1')
for _, key in ipairs({meta, msgs, ids, doc}) do
  if ttl >= 0 then redis.call('EXPIRE', key, ttl) elseif put then redis.call('PERSIST', key) end
end
local cursors = redis.call('HMGET', jrn, 'jp', 'je')
local idle = math.min(tonumber(cursors[1]), tonumber(cursors[2])) >= sq and redis.call('EXISTS', own) == 0
for _, key in ipairs({jrn, jlist}) do
  -- What waits outlives its session; a journal that is worked off goes soon after it.
  if idle and ttl >= 0 then redis.call('EXPIRE', key, ttl + 60) else redis.call('PERSIST', key) end
end
local promote = #journal > 0 or #fresh > 0
local window = h.cw or (not put and tonumber(m[8])) or h.dw
if promote or (h.ratio > 0 and total > math.floor(window * h.ratio)) then
  due(KEYS[8], MS, h.sid)
  wake(KEYS[10])
end
if promote and KEYS[11] then redis.call('ZADD', KEYS[11], MS, h.sid) end
if h.xd >= 0 and #journal > 0 then
  local first = redis.call('HGET', jrn, 'x0')
  if not first then
    first = MS
    redis.call('HSET', jrn, 'x0', string.format('%.0f', MS))
  end
  local at = math.min(MS + h.xd, tonumber(first) + h.xm)
  -- Enough for a batch, or the end of the session: there is nothing to wait for.
  if (h.xt and redis.call('HINCRBY', jrn, 'xt', asked) >= h.xt) or (put and h.ttl == 0) then
    at = MS
    wake(KEYS[10])
  end
  redis.call('ZADD', KEYS[9], at, h.sid)
end
return {'ok', string.format('%.0f', v), string.format('%.0f', total), count, added, ep, created, redis.call('HGET', meta, 'co') or '', back}
"""
)

# What of a session waits, read in one step: between two reads another worker could trim what it has done.
# KEYS journal, journal list, journal's memories; ARGV cursor, most messages, messages before them -> {journal, entries, memories}
SESSION_JOURNAL = """
local at = redis.call('HMGET', KEYS[1], 'jb', ARGV[1])
if not at[1] then return {{}, {}, {}} end
local start = tonumber(at[2]) - tonumber(at[1])
local entries = redis.call('LRANGE', KEYS[2], math.max(start - tonumber(ARGV[3]), 0), start + tonumber(ARGV[2]) - 1)
return {redis.call('HGETALL', KEYS[1]), entries, redis.call('HGETALL', KEYS[3])}
"""

# Replaces the oldest messages by a summary, if neither they nor the summary that it continues changed meanwhile.
# KEYS meta, messages, ids; ARGV head fence, messages to drop, context, its tokens, ids to remember -> 1 done, 0 the session moved on
SESSION_SUMMARY = (
    PRELUDE
    + """
if redis.call('HGET', KEYS[1], 'hd') ~= ARGV[1] then return 0 end
local n = tonumber(ARGV[2])
if redis.call('LLEN', KEYS[2]) < n then return 0 end
local gone = 0
for _, entry in ipairs(redis.call('LRANGE', KEYS[2], 0, n - 1)) do gone = gone + tonumber(string.match(entry, '^%d+ (%d+) ')) end
redis.call('LTRIM', KEYS[2], n, -1)
local left = redis.call('HINCRBY', KEYS[1], 'mt', -gone)
redis.call('HINCRBY', KEYS[1], 'v', 1)
redis.call('HSET', KEYS[1], 'ctx', ARGV[3], 'ct', ARGV[4], 'hd', string.format('%.0f', US), 'ua', string.format('%.0f', US))
local head = redis.call('LINDEX', KEYS[2], 0)
if head then
  redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', '(' .. string.format('%.0f', tonumber(string.match(head, '^(%d+) ')) - tonumber(ARGV[5])))
end
return 1
"""
)
