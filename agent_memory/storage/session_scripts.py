"""The Lua of sessions beside their writing: merging data, deleting, what waits of a user, and extraction's batches that are set aside."""

from __future__ import annotations

from agent_memory.storage.outbox_scripts import PRELUDE

# A JSON merge patch (RFC 7396) on the texts themselves: cjson would turn empty lists into objects and round large numbers. Both texts are
# written by `lua.compact`, so the same name is always the same text. `parts` gives the members of an object: names in order, and values.
_MERGE = r"""
local function ending(text, at)
  local first = string.sub(text, at, at)
  if first == '"' then
    while true do
      at = string.find(text, '["\\]', at + 1)
      if string.sub(text, at, at) == '"' then return at end
      at = at + 1
    end
  elseif first == '{' or first == '[' then
    local depth = 0
    while true do
      local sign = string.sub(text, at, at)
      if sign == '"' then at = ending(text, at)
      elseif sign == '{' or sign == '[' then depth = depth + 1
      else depth = depth - 1 end
      if depth == 0 then return at end
      at = string.find(text, '["%[%]{}]', at + 1)
    end
  end
  return string.find(text, '[,%]}]', at) - 1
end
local function parts(text)
  local names, values, at = {}, {}, 2
  while string.sub(text, at, at) == '"' do
    local last = ending(text, at)
    local name = string.sub(text, at, last)
    local stop = ending(text, last + 2)
    if not values[name] then names[#names + 1] = name end
    values[name] = string.sub(text, last + 2, stop)
    at = stop + 2
  end
  return names, values
end
local function merge(target, patch)
  local names, values = parts(string.sub(target, 1, 1) == '{' and target or '{}')
  local given, news = parts(patch)
  for _, name in ipairs(given) do
    local new = news[name]
    if new == 'null' then
      values[name] = nil
    else
      local old = values[name]
      if not old then names[#names + 1] = name end
      values[name] = string.sub(new, 1, 1) == '{' and merge(old or '{}', new) or new
    end
  end
  local members = {}
  for _, name in ipairs(names) do
    if values[name] then members[#members + 1] = name .. ':' .. values[name] end
  end
  return '{' .. table.concat(members, ',') .. '}'
end
"""

# Merges a patch into a session's data, or replaces it.
# KEYS meta; ARGV header {im, merge: bool}, JSON -> {"ok", version} | {"mismatch", v} | {"missing"}
SESSION_DATA = (
    PRELUDE
    + _MERGE
    + """
local h = cjson.decode(ARGV[1])
local m = redis.call('HMGET', KEYS[1], 'v', 'data')
if not m[1] then return {'missing'} end
if h.im and h.im ~= '*' and h.im ~= m[1] then return {'mismatch', m[1]} end
local data = h.merge and merge(m[2] or '{}', ARGV[2]) or ARGV[2]
redis.call('HSET', KEYS[1], 'data', data, 'ua', string.format('%.0f', US))
return {'ok', string.format('%.0f', redis.call('HINCRBY', KEYS[1], 'v', 1))}
"""
)

# The newest messages of a session whose tokens, each with an overhead, fit into a window; the very newest in any case. Without a window it
# is the session's own, or else the default one. However long the session is, no more is looked at than what is answered, and a little.
# Where messages hold more than text, some before those that fit are answered, too: the first that fit may answer a call of theirs.
# KEYS messages, meta; ARGV window or "", default window, overhead, most before
# -> {how many there are, how many fit, entries, newest first…}
SESSION_WINDOW = """#!lua flags=no-writes
local m = redis.call('HMGET', KEYS[2], 'cw', 'mx')
local left = tonumber(ARGV[1]) or tonumber(m[1] or '') or tonumber(ARGV[2])
local overhead, out, fit = tonumber(ARGV[3]), {redis.call('LLEN', KEYS[1]), 0}, nil
local before = m[2] and tonumber(ARGV[4]) or 0
local last, step = out[1] - 1, 32
while last >= 0 do
  local first = math.max(last - step + 1, 0)
  local entries = redis.call('LRANGE', KEYS[1], first, last)
  for i = #entries, 1, -1 do
    left = left - tonumber(string.match(entries[i], '^%-?%d+ (%d+) ')) - overhead
    if not fit and left < 0 and #out > 2 then fit = #out - 2 end
    if fit and #out - 2 - fit >= before then
      out[2] = fit
      return out
    end
    out[#out + 1] = entries[i]
  end
  last, step = first - 1, math.min(step * 2, 512)
end
out[2] = fit or #out - 2
return out
"""

# Strikes messages out of a session, and with them, if asked to, its summary. Their identities stay known: they are not written again.
# KEYS meta, messages; ARGV epoch, fence, drop the summary 1/0, numbers of messages -> 1 done, 0 the session moved on
SESSION_STRIKE = (
    PRELUDE
    + """
local m = redis.call('HMGET', KEYS[1], 'ep', 'hd')
if m[1] ~= ARGV[1] or m[2] ~= ARGV[2] then return 0 end
local wanted, gone = {}, 0
for i = 4, #ARGV do wanted[ARGV[i]] = true end
for _, entry in ipairs(redis.call('LRANGE', KEYS[2], 0, -1)) do
  local seq, tokens = string.match(entry, '^(%d+) (%d+) ')
  if wanted[seq] then
    gone = gone + tonumber(tokens)
    redis.call('LREM', KEYS[2], 1, entry)
  end
end
redis.call('HINCRBY', KEYS[1], 'mt', -gone)
redis.call('HINCRBY', KEYS[1], 'v', 1)
redis.call('HSET', KEYS[1], 'hd', string.format('%.0f', US), 'ua', string.format('%.0f', US))
if ARGV[3] == '1' then redis.call('HDEL', KEYS[1], 'ctx', 'ct') end
return 1
"""
)

# Forgets a session.
# KEYS meta, messages, ids, doc, journal, journal list, journal's memories, batches set aside, the user's waiting sessions (or meta again),
#      then per kind of work on sessions: due, tries, why, dead
# ARGV sid, epoch that it must have ("" = any) -> 1 when it was there
SESSION_DELETE = """
local there = redis.call('EXISTS', KEYS[1])
if ARGV[2] ~= '' then
  local epoch = redis.call('HGET', KEYS[1], 'ep') or redis.call('HGET', KEYS[5], 'ep')
  if epoch and epoch ~= ARGV[2] then return 0 end
  there = 1
end
local members = {ARGV[1]}
for _, from in ipairs(redis.call('SMEMBERS', KEYS[8])) do
  members[#members + 1] = ARGV[1] .. '.' .. from
  redis.call('DEL', KEYS[5] .. '.' .. from, KEYS[5] .. '.' .. from .. ':l')
end
redis.call('DEL', unpack(KEYS, 1, 8))
if KEYS[9] ~= KEYS[1] then redis.call('ZREM', KEYS[9], ARGV[1]) end
for _, member in ipairs(members) do
  for k = 10, #KEYS, 4 do
    redis.call('ZREM', KEYS[k], member)
    redis.call('HDEL', KEYS[k + 1], member)
    redis.call('HDEL', KEYS[k + 2], member)
    redis.call('ZREM', KEYS[k + 3], member)
  end
end
return there
"""

# Ends the record that a session has work, when it has none: promoted, extracted, nothing set aside. With a batch, ends that first.
# KEYS meta, journal, journal list, journal's memories, batches set aside, the user's waiting sessions (or meta again), then with a batch:
#      its journal, its list, due, tries, why and dead of extraction
# ARGV sid, the batch's cursor -> 1 nothing waits
SESSION_SETTLE = """
if KEYS[7] then
  local batch = ARGV[1] .. '.' .. ARGV[2]
  redis.call('DEL', KEYS[7], KEYS[8])
  redis.call('SREM', KEYS[5], ARGV[2])
  redis.call('ZREM', KEYS[9], batch)
  redis.call('HDEL', KEYS[10], batch)
  redis.call('HDEL', KEYS[11], batch)
  redis.call('ZREM', KEYS[12], batch)
end
local j = redis.call('HMGET', KEYS[2], 'sq', 'jp', 'je')
if j[1] and math.min(tonumber(j[2]), tonumber(j[3])) < tonumber(j[1]) then return 0 end
if redis.call('EXISTS', KEYS[4]) == 1 then return 0 end
if redis.call('EXISTS', KEYS[1]) == 0 then redis.call('DEL', KEYS[2], KEYS[3]) end
if redis.call('EXISTS', KEYS[5]) == 1 then return 0 end
if KEYS[6] ~= KEYS[1] then redis.call('ZREM', KEYS[6], ARGV[1]) end
return 1
"""

# Sets a batch of messages aside that extraction gave up: it becomes a journal of its own, dead until it is replayed or dropped, and the
# session's extraction goes on behind it. All in one step, so that a message is either in the one journal or in the other.
# KEYS journal, journal list, the batch's journal, its list, batches set aside, due:extraction, why:extraction, dead:extraction, wake
# ARGV sid, epoch, cursor, its end, messages before it, reason or "", reason if none is known -> 1 done, 0 the session moved on
SESSION_ASIDE = (
    PRELUDE
    + """
local j = redis.call('HMGET', KEYS[1], 'ep', 'je', 'jb', 'tn', 'sid', 'ns', 'us', 'st')
if j[1] ~= ARGV[2] or j[2] ~= ARGV[3] then return 0 end
local base = tonumber(j[3])
local low = math.max(base, tonumber(ARGV[3]) - tonumber(ARGV[5]))
local member = ARGV[1] .. '.' .. ARGV[3]
redis.call('DEL', KEYS[3], KEYS[4])
redis.call('HSET', KEYS[3], 'ep', j[1], 'sq', ARGV[4], 'jp', ARGV[4], 'je', ARGV[3], 'jb', string.format('%.0f', low))
redis.call('HSET', KEYS[3], 'tn', j[4], 'sid', j[5])
for i, name in ipairs({'ns', 'us', 'st'}) do
  if j[5 + i] then redis.call('HSET', KEYS[3], name, j[5 + i]) end
end
chunked('RPUSH', KEYS[4], redis.call('LRANGE', KEYS[2], low - base, tonumber(ARGV[4]) - base - 1))
redis.call('SADD', KEYS[5], ARGV[3])
redis.call('ZADD', KEYS[8], MS, member)
redis.call('HSET', KEYS[7], member, ARGV[6] ~= '' and ARGV[6] or redis.call('HGET', KEYS[7], ARGV[1]) or ARGV[7])
redis.call('HSET', KEYS[1], 'je', ARGV[4])
redis.call('HDEL', KEYS[1], 'x0')
redis.call('ZADD', KEYS[6], MS, ARGV[1])
wake(KEYS[9])
return 1
"""
)

# The newest messages of a user that wait for promotion, the session written last first: so many, of so many sessions, however many wait.
# They are read one by one, because nobody knows how large the next one is: one that is larger than what is left ends its session. The
# journals' names are made here; they share the slot of KEYS[1].
# KEYS the user's waiting sessions; ARGV start of a journal's key, a session that is left out or "", most sessions looked at, read, most
#      messages of each, of all, most bytes of all, then the only namespaces that are wanted, if not all
# -> {tenant, session, namespace or "", user, has namespace 1/0, entries (newest first)…}…
SESSION_RECENT = """#!lua flags=no-writes
local out, sessions, each = {}, tonumber(ARGV[4]), tonumber(ARGV[5])
local room, left = tonumber(ARGV[6]), tonumber(ARGV[7])
local wanted = #ARGV > 7 and {}
for i = 8, #ARGV do wanted[ARGV[i]] = true end
for _, sid in ipairs(redis.call('ZREVRANGE', KEYS[1], 0, ARGV[3] - 1)) do
  if room <= 0 or #out >= sessions then break end
  local key = ARGV[1] .. sid
  local j = sid ~= ARGV[2] and redis.call('HMGET', key, 'tn', 'sid', 'ns', 'us', 'jp', 'sq') or {}
  if j[1] and tonumber(j[5]) < tonumber(j[6]) and (not wanted or (j[3] and wanted[j[3]])) then
    local found = {j[1], j[2], j[3] or '', j[4] or '', j[3] and 1 or 0}
    for i = 1, math.min(tonumber(j[6]) - tonumber(j[5]), each, room) do
      local entry = redis.call('LINDEX', key .. ':l', -i)
      if not entry or #entry > left then break end
      left, room = left - #entry, room - 1
      found[#found + 1] = entry
    end
    out[#out + 1] = found
  end
end
return out
"""
