"""The Lua that keeps long-term memories: their vectors, their end, and their deletion. Each script is one atomic change."""

from __future__ import annotations

from agent_memory.storage.memory_places import MIRROR, PLACES
from agent_memory.storage.outbox_scripts import PRELUDE

# Adds what the search needs to memories that have not changed since they were read.
# KEYS due:memory, try:memory, why:memory, dead:memory, then per memory: its key, its vector's key (the same key for what is history)
# ARGV per memory: mid, version, lease, index terms, vector field, vector -> per memory 1 written, 0 it changed or is gone
MEMORY_INDEX = (
    MIRROR
    + """
local out, a = {}, 1
for k = 5, #KEYS, 2 do
  local mid = ARGV[a]
  local m = redis.call('HMGET', KEYS[k], 'n', 'k')
  local ok = 0
  if m[1] == ARGV[a + 1] then
    -- Only other words are written: each write of a text field leaves old postings in the statistics until they are collected.
    if m[2] ~= ARGV[a + 3] then redis.call('HSET', KEYS[k], 'k', ARGV[a + 3]) end
    if KEYS[k] == KEYS[k + 1] then
      redis.call('HSET', KEYS[k], ARGV[a + 4], ARGV[a + 5])
    else
      mirror(KEYS[k], KEYS[k + 1], ARGV[a + 4], ARGV[a + 5])
    end
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

# Moves memories whose end has come to where default reads do not look.
# KEYS due:memory, try:memory, why:memory, dead:memory; ARGV root, mids… -> how many moved
MEMORY_SWEEP = (
    PRELUDE
    + """
local R, DUE, TRIES, WHY, DEAD = ARGV[1], KEYS[1], KEYS[2], KEYS[3], KEYS[4]
"""
    + PLACES
    + """
local moved = 0
for i = 2, #ARGV do
  if ended(mk(ARGV[i])) then
    close(ARGV[i])
    moved = moved + 1
  end
end
return moved
"""
)

# Deletes memories for good, with all that is known of them: versions, evidence, other names, changes.
# KEYS due:memory, try:memory, why:memory, dead:memory
# ARGV root, tombstone seconds, reach, then per memory: mid, version that it must have or "", order key or "", and (lines of order key and
# mid) where messages that are its evidence stand
# -> per memory 1 deleted, 0 not there or changed
MEMORY_DELETE = (
    PRELUDE
    + """
local R, DUE, TRIES, WHY, DEAD = ARGV[1], KEYS[1], KEYS[2], KEYS[3], KEYS[4]
"""
    + PLACES
    + """
local wipe
local function forget_change(id)
  local key = R .. 'ch:' .. id
  for mid in string.gmatch(redis.call('HGET', key, 'ms') or '', '%x+') do redis.call('ZREM', R .. 'mh:' .. mid, 'c' .. id) end
  redis.call('DEL', key)
end
wipe = function(mid)
  local ledger = R .. 'mh:' .. mid
  local members = redis.call('ZRANGE', ledger, 0, -1)
  redis.call('DEL', ledger)
  for _, member in ipairs(members) do
    local kind, rest = string.sub(member, 1, 1), string.sub(member, 2)
    if kind == 'c' then
      forget_change(rest)
    elseif kind == 'a' then
      redis.call('DEL', R .. 'al:' .. rest)
      wipe(rest)
    else
      redis.call('DEL', hk(mid .. '.' .. member))
      redis.call('SREM', R .. 'bare', mid .. '.' .. member)
    end
  end
  local key = home(mid)
  if key then unlink(mid, redis.call('HGET', key, 'bk')) end
  redis.call('DEL', mk(mid), vk(mid), hk(mid), R .. 'ev:' .. mid)
  redis.call('HDEL', R .. 'use', mid)
  redis.call('SREM', R .. 'use:unfolded', mid)
  redis.call('SET', R .. 'mt:' .. mid, string.format('%.0f', US), 'EX', ARGV[2])
  done(mid)
end
local out, reach = {}, tonumber(ARGV[3])
for i = 4, #ARGV, 4 do
  local mid, gone = ARGV[i], 0
  local key = home(mid)
  if ARGV[i + 1] == '' or (key and redis.call('HGET', key, 'n') == ARGV[i + 1]) then
    gone = key and 1 or 0
    if ARGV[i + 2] ~= '' then leave(ARGV[i + 2], mid, reach) end
    for order, told in string.gmatch(ARGV[i + 3], '([^\\n]+) (%x+)') do
      -- One that is a memory of its own, cited by this, stays in its place.
      if string.match(redis.call('GET', R .. 'al:' .. told) or '', '^%S+') == mid then leave(order, told, reach) end
    end
    wipe(mid)
  end
  out[#out + 1] = gone
end
return out
"""
)
