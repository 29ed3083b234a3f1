"""The Lua that brings memories and changes back from an export, each as it was there. Each script is one atomic change."""

from __future__ import annotations

from agent_memory.storage.memory_places import PLACES
from agent_memory.storage.outbox_scripts import PRELUDE
from agent_memory.storage.owner_scripts import OWNERS

# Brings memories back with all that is known of them. What is here stays as it is.
# KEYS due:memory, try:memory, why:memory, dead:memory, wake
# ARGV header {root, field (of vectors), seconds (of tombstones), items: [{mid, own (its owner), state, n, h, first, count,
#   vector (of ARGV)?, order?, place?, sc?, slot?, names? (what knows a memory of its words), versions: [{n, first, count, bare: bool}…],
#   aliases: [[mid, digest]…], evidence: [field, json…]}…]}, then the fields and values of hashes, and vectors
# -> per memory "new", "same" (it is here), "other" (something else stands here), "slot" (another fact of its slot is current),
#    "twin <mid>" (a memory of its words is current)
MEMORY_RESTORE = (
    PRELUDE
    + """
local h = cjson.decode(ARGV[1])
local R, DUE, TRIES, WHY, DEAD = h.root, KEYS[1], KEYS[2], KEYS[3], KEYS[4]
"""
    + PLACES
    + """
"""
    + OWNERS
    + """
local function against(s)
  local owner = owner_of(s.mid)
  if owner and owner ~= s.own then return 'other' end
  local here = home(s.mid)
  if here then
    local at = redis.call('HMGET', here, 'n', 'h')
    return at[1] == s.n and at[2] == s.h and 'same' or 'other'
  end
  if s.state == 'gone' then
    local last = s.versions[#s.versions]
    return redis.call('EXISTS', hk(s.mid .. '.' .. last.n)) == 1 and 'same' or nil
  end
  local twin
  for _, name in ipairs(s.state == 'current' and s.names or {}) do
    local known = redis.call('HGET', R .. 'by:' .. s.sc, name)
    twin = twin or known and redis.call('EXISTS', mk(known)) == 1 and known
  end
  local of = redis.call('GET', R .. 'al:' .. s.mid)
  if of then return string.match(of, '^%S+') == twin and 'same' or 'other' end
  if twin then return 'twin ' .. twin end
  if s.slot and s.state == 'current' then
    local holder = redis.call('HGET', R .. 'by:' .. s.sc, s.slot)
    if holder and home(holder) then return 'slot' end
  end
  return nil
end
local function put(key, s) redis.call('HSET', key, unpack(ARGV, s.first, s.first + s.count - 1)) end
local out, dirty = {}, false
for _, s in ipairs(h.items) do
  local why = against(s)
  if not why then
    dirty = true
    local ledger = R .. 'mh:' .. s.mid
    for _, v in ipairs(s.versions) do
      local name = s.mid .. '.' .. v.n
      put(hk(name), v)
      redis.call('ZADD', ledger, v.n, v.n)
      if v.bare then redis.call('SADD', R .. 'bare', name) end
    end
    redis.call('DEL', R .. 'mt:' .. s.mid)
    if s.state == 'current' then
      put(mk(s.mid), s)
      if s.vector then mirror(mk(s.mid), vk(s.mid), h.field, ARGV[s.vector]) else due(DUE, MS, s.mid) end
      if s.order then redis.call('ZADD', s.order, 'NX', s.place, s.mid) end
      link(s.mid, redis.call('HGET', mk(s.mid), 'bk'))
    elseif s.state == 'over' then
      put(hk(s.mid), s)
      if not s.vector then due(DUE, MS, s.mid) end
    elseif redis.call('EXISTS', R .. 'al:' .. s.mid) == 0 then
      -- Forgotten there, and so here: background work does not bring it back, an undo does.
      redis.call('SET', R .. 'mt:' .. s.mid, string.format('%.0f', US), 'EX', h.seconds)
    end
    for _, one in ipairs(s.aliases) do
      local key = R .. 'al:' .. one[1]
      local owner = owner_of(one[1])
      if not home(one[1]) and redis.call('EXISTS', key) == 0 and (not owner or owner == s.own) then
        redis.call('SET', key, s.mid .. ' ' .. one[2])
        redis.call('ZADD', ledger, US, 'a' .. one[1])
        redis.call('DEL', R .. 'mt:' .. one[1])
      end
    end
    for i = 1, #s.evidence, 2 do redis.call('HSETNX', R .. 'ev:' .. s.mid, s.evidence[i], s.evidence[i + 1]) end
    retag(s.mid)
  end
  out[#out + 1] = why or 'new'
end
if dirty then wake(KEYS[5]) end
return out
"""
)

# Brings a change back, unless there is one of its id. KEYS the change; ARGV root, id, µs of its time, its memories (names, with blanks
# between), fields and values… -> 1 brought back, 0 it is here, -1 something else stands here
CHANGE_RESTORE = """
local there = redis.call('HMGET', KEYS[1], 't', 'ms')
if there[1] then return there[1] == ARGV[6] and there[2] == ARGV[4] and 0 or -1 end
redis.call('HSET', KEYS[1], 'ms', ARGV[4], unpack(ARGV, 5))
for mid in string.gmatch(ARGV[4], '%S+') do redis.call('ZADD', ARGV[1] .. 'mh:' .. mid, ARGV[3], 'c' .. ARGV[2]) end
return 1
"""
