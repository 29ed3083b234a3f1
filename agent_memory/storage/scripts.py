"""The Lua of sessions and memories. Each script is one atomic change; `storage/lua.py` gives each a typed function.

Common to all: time is Redis' own; headers are JSON; a write marks what it makes due in the outbox in the same script.
"""

from __future__ import annotations

from agent_memory.storage.outbox_scripts import PRELUDE

# A vector's document carries the tags of its memory; here they are written anew, with the vector or without.
_MIRROR = """
local function mirror(memory, vector, field, value)
  local names = {'t', 'ns', 'u', 's', 'ty', 'st', 'tp', 'en', 'c', 'la', 'e'}
  local values = redis.call('HMGET', memory, unpack(names))
  local set, unset = {}, {}
  for i, name in ipairs(names) do
    if values[i] then
      set[#set + 1] = name
      set[#set + 1] = values[i]
    else
      unset[#unset + 1] = name
    end
  end
  if field then
    redis.call('DEL', vector)
    redis.call('HSET', vector, field, value, unpack(set))
  elseif redis.call('EXISTS', vector) == 1 then
    redis.call('HSET', vector, unpack(set))
    if #unset > 0 then redis.call('HDEL', vector, unpack(unset)) end
  end
end
"""

# Writes a session: mode "put" replaces, "append" adds what is not there yet.
# KEYS meta, messages, ids, doc, journal, journal list, journal's memories, due:session, due:extraction, wake, the user's waiting sessions
#      (only with a user)
# ARGV header {mode, sid, im, create: [f, v…], set: [f, v…], unset: [f…], doc: [f, v…], ttl (s, -1 = none), cw?, dw (tokens),
#      ratio (0 = never summarize), xd (ms, -1 = off), xm (ms), own: [id, json…] (memories to promote), keep (ids to remember),
#      st: strategy, ua? (µs, the time of its change if not now)}, then per message: identity, tokens, journal? 1/0, json
# -> {"ok", version, tokens, messages, added, epoch, created (µs), created as the caller said or ""} or {"mismatch", version or "0"}
SESSION_WRITE = (
    PRELUDE
    + """
local h = cjson.decode(ARGV[1])
local meta, msgs, ids, doc, jrn, jlist, own = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local m = redis.call('HMGET', meta, 'v', 'ep', 'mt', 'ttl', 'hd', 'ctx', 'ca', 'cw')
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
local entries, journal, total, added = {}, {}, 0, 0
for i = 2, #ARGV, 4 do
  local seq = redis.call('ZSCORE', ids, ARGV[i])
  local known = seq
  if not known then
    sq = sq + 1
    seq = sq
    redis.call('ZADD', ids, seq, ARGV[i])
    added = added + 1
  end
  if put or not known then
    local entry = string.format('%.0f', seq) .. ' ' .. ARGV[i + 1] .. ' ' .. ARGV[i + 3]
    entries[#entries + 1] = entry
    total = total + tonumber(ARGV[i + 1])
    if not known then journal[#journal + 1] = (ARGV[i + 2] == '1' and '' or '-') .. entry end
  end
end
local changed = put or added > 0 or not exists
if put then
  local old = redis.call('LRANGE', msgs, 0, -1)
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
chunked('HSET', own, h.own)
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
local promote = #journal > 0 or #h.own > 0
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
  redis.call('ZADD', KEYS[9], math.min(MS + h.xd, tonumber(first) + h.xm), h.sid)
end
return {'ok', string.format('%.0f', v), string.format('%.0f', total), count, added, ep, created, redis.call('HGET', meta, 'co') or ''}
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

# Memories and, when they were made from a session's journal, its cursor, in one step.
# KEYS due:memory, wake, journal, journal list, meta, journal's memories, order key to leave, then per memory: key, order key (or the key
# again), tombstone, vector
# ARGV header {fence: {ep, cur, from, to, both, keep, own: [id, json…], at}?, late: bool, expect: version?, leave: bool,
#      past: bool},
#      then per memory: mid, digest, n, field, value …(n of both)
# -> {"fenced"} or {"ok", states…} with a state per memory: "new", "changed", "same", "buried", "moved" (another version than expected),
# "other" (with `past`: other content stands there). With `past`, messages are put among those of their session by their own time.
MEMORY_WRITE = (
    PRELUDE
    + _MIRROR
    + """
local h = cjson.decode(ARGV[1])
local f = h.fence
if f then
  local j = redis.call('HMGET', KEYS[3], 'ep', f.cur)
  if j[1] ~= f.ep or tonumber(j[2] or '-1') ~= f.from then return {'fenced'} end
end
local out, k, a, dirty = {'ok'}, 8, 2, false
local function neighbours(order, mid)
  local rank = redis.call('ZRANK', order, mid)
  return rank and redis.call('ZRANGE', order, math.max(rank - h.reach, 0), rank + h.reach) or {}
end
while k <= #KEYS do
  local key, order, tomb, vector = KEYS[k], KEYS[k + 1], KEYS[k + 2], KEYS[k + 3]
  local mid, dig, n = ARGV[a], ARGV[a + 1], tonumber(ARGV[a + 2])
  local old = redis.call('HMGET', key, 'h', 'n')
  local state
  if h.late and redis.call('EXISTS', tomb) == 1 then
    state = 'buried'
  elseif h.expect and old[2] ~= h.expect then
    state = 'moved'
  elseif old[1] == dig then
    state = 'same'
  elseif h.past and old[1] then
    state = 'other'
  else
    state = old[1] and 'changed' or 'new'
    if old[1] then redis.call('HDEL', key, 'u', 's', 'ns', 'tp', 'en', 'e', 'k') end
    redis.call('DEL', tomb)
    redis.call('HSET', key, 'h', dig, 'n', string.format('%.0f', US), unpack(ARGV, a + 3, a + 2 + 2 * n))
    if old[1] then mirror(key, vector) end
    if h.leave then
      for _, other in ipairs(neighbours(KEYS[7], mid)) do due(KEYS[1], MS, other) end
      redis.call('ZREM', KEYS[7], mid)
    end
    if order ~= key and not redis.call('ZSCORE', order, mid) then
      if h.past then
        -- Negative, so before all that arrive by themselves, whose places are counted from 1; the clock's 15 µs are kept.
        redis.call('ZADD', order, tonumber(redis.call('HGET', key, 'c')) - 1e11, mid)
        for _, other in ipairs(neighbours(order, mid)) do due(KEYS[1], MS, other) end
      else
        local last = redis.call('ZREVRANGE', order, 0, h.reach - 1, 'WITHSCORES')
        redis.call('ZADD', order, math.max(tonumber(last[2]) or 0, 0) + 1, mid)
        for i = 1, #last, 2 do due(KEYS[1], MS, last[i]) end
      end
    end
    due(KEYS[1], MS, mid)
    dirty = true
  end
  out[#out + 1] = state
  k = k + 4
  a = a + 3 + 2 * n
end
if dirty then wake(KEYS[2]) end
if f then
  local to = string.format('%.0f', f.to)
  redis.call('HSET', KEYS[3], f.cur, to)
  if f.both then redis.call('HSET', KEYS[3], 'je', to) end
  if f.cur == 'je' then redis.call('HDEL', KEYS[3], 'x0') end
  local j = redis.call('HMGET', KEYS[3], 'sq', 'jb', 'jp', 'je')
  local done = math.min(tonumber(j[3]), tonumber(j[4]))
  local low = done - f.keep
  local live = redis.call('EXISTS', KEYS[5]) == 1
  for i = 1, #f.own, 2 do
    -- Other words under the same id came meanwhile: they still wait.
    if redis.call('HGET', KEYS[6], f.own[i]) == f.own[i + 1] then redis.call('HDEL', KEYS[6], f.own[i]) end
  end
  local idle = done >= tonumber(j[1]) and redis.call('EXISTS', KEYS[6]) == 0
  -- The journal of a session that is gone goes when its work is settled, which still has to know whose it was.
  if low > tonumber(j[2]) then
    redis.call('LTRIM', KEYS[4], low - tonumber(j[2]), -1)
    redis.call('HSET', KEYS[3], 'jb', string.format('%.0f', low))
  end
  if live then
    local ttl = redis.call('TTL', KEYS[5])
    if ttl > 0 and idle then
      redis.call('EXPIRE', KEYS[3], ttl + 60)
      redis.call('EXPIRE', KEYS[4], ttl + 60)
    end
    if f.cur == 'jp' then redis.call('HSET', KEYS[5], 'pt', string.format('%.0f', US)) end
    if #f.own > 0 then
      local promoted = cjson.decode(redis.call('HGET', KEYS[5], 'pm') or '{}')
      for i = 1, #f.own, 2 do promoted[f.own[i]] = f.at end
      redis.call('HSET', KEYS[5], 'pm', cjson.encode(promoted))
    end
  end
end
return out
"""
)

# Adds what the search needs to memories that have not changed since they were read.
# KEYS due:memory, try:memory, why:memory, dead:memory, then per memory: its key, its vector's key
# ARGV per memory: mid, version, lease, index terms, vector field, vector -> per memory 1 written, 0 it changed or is gone
MEMORY_INDEX = (
    _MIRROR
    + """
local out, a = {}, 1
for k = 5, #KEYS, 2 do
  local mid = ARGV[a]
  local m = redis.call('HMGET', KEYS[k], 'n', 'k')
  local ok = 0
  if m[1] == ARGV[a + 1] then
    -- Only other words are written: each write of a text field leaves old postings in the statistics until they are collected.
    if m[2] ~= ARGV[a + 3] then redis.call('HSET', KEYS[k], 'k', ARGV[a + 3]) end
    mirror(KEYS[k], KEYS[k + 1], ARGV[a + 4], ARGV[a + 5])
    ok = 1
  end
  if ok == 1 or not m[1] then
    local score = redis.call('ZSCORE', KEYS[1], mid)
    local held = string.match(redis.call('HGET', KEYS[2], mid) or '', '^%d+ (%d+)') or ARGV[a + 2]
    if score and tonumber(score) == tonumber(ARGV[a + 2]) then redis.call('ZREM', KEYS[1], mid) end
    -- What was marked and claimed again meanwhile (a neighbour came) is that claim's to end: without its record it could not begin.
    if held == ARGV[a + 2] or not score then
      redis.call('HDEL', KEYS[2], mid)
      redis.call('HDEL', KEYS[3], mid)
      redis.call('ZREM', KEYS[4], mid)
    end
  end
  out[#out + 1] = ok
  a = a + 6
end
return out
"""
)

# Deletes memories for good.
# KEYS due:memory, try:memory, why:memory, dead:memory, usage, usage not folded, then per memory: key, order key (or the key again),
# tombstone, vector
# ARGV tombstone seconds, reach, then per memory: mid, version that it must have or "" -> per memory 1 deleted, 0 not there or changed
MEMORY_DELETE = (
    PRELUDE
    + """
local out, i, reach = {}, 3, tonumber(ARGV[2])
for k = 7, #KEYS, 4 do
  local mid, gone = ARGV[i], 0
  if ARGV[i + 1] == '' or redis.call('HGET', KEYS[k], 'n') == ARGV[i + 1] then
    gone = redis.call('DEL', KEYS[k])
    redis.call('DEL', KEYS[k + 3])
    if KEYS[k + 1] ~= KEYS[k] then
      local rank = redis.call('ZRANK', KEYS[k + 1], mid)
      if rank then
        for _, other in ipairs(redis.call('ZRANGE', KEYS[k + 1], math.max(rank - reach, 0), rank + reach)) do
          if other ~= mid then due(KEYS[1], MS, other) end
        end
        redis.call('ZREM', KEYS[k + 1], mid)
      end
    end
    redis.call('SET', KEYS[k + 2], '1', 'EX', ARGV[1])
    redis.call('ZREM', KEYS[1], mid)
    redis.call('HDEL', KEYS[2], mid)
    redis.call('HDEL', KEYS[3], mid)
    redis.call('ZREM', KEYS[4], mid)
    redis.call('HDEL', KEYS[5], mid)
    redis.call('SREM', KEYS[6], mid)
  end
  out[#out + 1] = gone
  i = i + 2
end
return out
"""
)
