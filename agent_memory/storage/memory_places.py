"""The Lua that moves long-term memories about: between what is current and what is history. Shared by the scripts that change memories.

A memory's current version stands in `m:` (words) and `v:` (vector). Nothing is overwritten: what a change replaces goes to
`h:<mid>.<version>` with its vector, and a current version that is no longer true (its end has come) to `h:<mid>`. A version's name is the
time (µs) of its writing. `by:<scope>` knows which current memory has given words or a slot.
"""

from __future__ import annotations

# A vector's document carries the tags of its memory; here they are written anew, with the vector or without.
MIRROR = """
local MIRRORED = {'t', 'ns', 'u', 's', 'ty', 'st', 'tp', 'en', 'c', 'la', 'e', 'ag', 'sl', 'ct', 'sc', 'tr', 'vf', 'z', 'b', 'ra', 'md'}
local function mirror(memory, vector, field, value)
  local values = redis.call('HMGET', memory, unpack(MIRRORED))
  local set, unset = {}, {}
  for i, name in ipairs(MIRRORED) do
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

# What moves memories about. Expects R (the root of all keys) and DUE, TRIES, WHY, DEAD (the outbox of memories).
PLACES = (
    MIRROR
    + """
local stamp = US
local NOW = string.format('%.6f', US / 1000000)
local function mk(mid) return R .. 'm:' .. mid end
local function vk(mid) return R .. 'v:' .. mid end
local function hk(name) return R .. 'h:' .. name end
local function home(mid)
  local now, over = mk(mid), hk(mid)
  if redis.call('EXISTS', now, over) == 0 then return nil end
  return redis.call('EXISTS', now) == 1 and now or over
end
local function done(member)
  redis.call('ZREM', DUE, member)
  redis.call('HDEL', TRIES, member)
  redis.call('HDEL', WHY, member)
  redis.call('ZREM', DEAD, member)
end
local function link(mid, bk)
  if not bk then return end
  local sc, kin, slot, words = string.match(bk, '^(%S+) (%S*) (%S*) ?(%S*)$')
  if kin ~= '' then redis.call('HSETNX', R .. 'by:' .. sc, kin, mid) end
  if slot ~= '' then redis.call('HSET', R .. 'by:' .. sc, slot, mid) end
  -- What is stated has its words from the first on; of what was said, the last time counts.
  if words ~= '' then redis.call(kin ~= '' and 'HSETNX' or 'HSET', R .. 'by:' .. sc, words, mid) end
end
local function unlink(mid, bk)
  if not bk then return end
  local sc, kin, slot, words = string.match(bk, '^(%S+) (%S*) (%S*) ?(%S*)$')
  for _, name in ipairs({kin, slot, words}) do
    if name ~= '' and redis.call('HGET', R .. 'by:' .. sc, name) == mid then redis.call('HDEL', R .. 'by:' .. sc, name) end
  end
end
local function whole(mid, key)
  -- All fields of a current version with its vector, and whether it has one.
  local flat, has = redis.call('HGETALL', key), false
  local fields = {}
  for i = 1, #flat, 2 do
    fields[flat[i]] = flat[i + 1]
    if string.sub(flat[i], 1, 2) == 'v_' then has = true end
  end
  if key == mk(mid) then
    local vector = redis.call('HGETALL', vk(mid))
    for i = 1, #vector, 2 do
      if string.sub(vector[i], 1, 2) == 'v_' then
        fields[vector[i]] = vector[i + 1]
        has = true
      end
    end
  end
  return fields, has
end
local function own_session(s, es)
  if not s or not es then return s end
  if s == es then return nil end
  return string.sub(s, 1, #s - #es - 1)
end
-- A memory is found in its own session and in those where it was said, too: after a change of its evidence these are named anew.
local function retag(mid)
  local key = home(mid)
  if not key then return end
  local at = redis.call('HMGET', key, 's', 'es')
  local own, seen, also = own_session(at[1], at[2]), {}, {}
  for _, raw in ipairs(redis.call('HVALS', R .. 'ev:' .. mid)) do
    local session = cjson.decode(raw).session_id
    if type(session) == 'string' and session ~= '' then
      local name = string.gsub(session, '.', function(byte) return string.format('%02x', string.byte(byte)) end)
      if name ~= own and not seen[name] then
        seen[name] = true
        also[#also + 1] = name
      end
    end
  end
  table.sort(also)
  local es = table.concat(also, ',')
  if es == (at[2] or '') then return end
  if es == '' then
    redis.call('HDEL', key, 'es')
    if own then redis.call('HSET', key, 's', own) else redis.call('HDEL', key, 's') end
  else
    redis.call('HSET', key, 'es', es, 's', own and own .. ',' .. es or es)
  end
  if key == mk(mid) then mirror(key, vk(mid)) end
end
local function flattened(fields)
  local flat = {}
  for name, value in pairs(fields) do
    flat[#flat + 1] = name
    flat[#flat + 1] = value
  end
  return flat
end
local function archive(mid, key, order)
  local fields, has = whole(mid, key)
  local name = mid .. '.' .. fields['n']
  fields['rt'] = NOW
  -- Of a version only the session that it is of is known, not those where it was said, too.
  fields['s'], fields['es'] = own_session(fields['s'], fields['es']), nil
  if order then
    local rank = redis.call('ZSCORE', order, mid)
    if rank then
      fields['ok'] = order
      fields['os'] = rank
    end
  end
  redis.call('HSET', hk(name), unpack(flattened(fields)))
  redis.call('ZADD', R .. 'mh:' .. mid, fields['n'], fields['n'])
  if not has then redis.call('SADD', R .. 'bare', name) end
  return fields['n'], fields['bk']
end
local function around(order, mid, reach)
  local rank = redis.call('ZRANK', order, mid)
  return rank and redis.call('ZRANGE', order, math.max(rank - reach, 0), rank + reach) or {}
end
local function leave(order, mid, reach)
  for _, other in ipairs(around(order, mid, reach)) do
    if other ~= mid then due(DUE, MS, other) end
  end
  redis.call('ZREM', order, mid)
end
local function close(mid)
  -- A current version whose end has come: no longer where default reads look.
  local fields, has = whole(mid, mk(mid))
  redis.call('HSET', hk(mid), unpack(flattened(fields)))
  redis.call('DEL', mk(mid), vk(mid))
  unlink(mid, fields['bk'])
  if has then done(mid) else due(DUE, MS, mid) end
end
local function retire(mid, order, reach)
  local key = home(mid)
  local n, bk = archive(mid, key, order)
  unlink(mid, bk)
  redis.call('DEL', mk(mid), vk(mid), hk(mid))
  if order then leave(order, mid, reach) end
  done(mid)
  return n
end
local function ended(key)
  -- What is in quarantine is no more to be found than what is over.
  local at = redis.call('HMGET', key, 'z', 'q')
  return at[2] or at[1] and tonumber(at[1]) * 1000000 <= US
end
"""
)
