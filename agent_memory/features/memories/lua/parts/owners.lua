-- Finds the owner of an id. In its tenant an id belongs to one owner, even after its memory retired. An owner is
-- "<namespace> <user> <agent>" as tags; see `memories/records.py`.
-- NEEDS: root
local function owner_in(key)
  local fields = redis.call('HMGET', key, 'ns', 'u', 'ag', 'n')
  return fields[4] and (fields[1] or '') .. ' ' .. (fields[2] or '') .. ' ' .. (fields[3] or '') or nil
end
-- An id that was forgotten by request keeps its owner while the request can be undone.
local function forgotten_owner(mid) return redis.call('GET', root .. 'fo:' .. mid) or nil end
-- Returns the owner of the id's memory, its alias's memory, its versions or its receipt; nil if the id is free.
local function owner_of(mid, hops)
  local memory, over, alias, ledger = root .. 'm:' .. mid, root .. 'h:' .. mid, root .. 'al:' .. mid, root .. 'mh:' .. mid
  if redis.call('EXISTS', memory, over, alias, ledger) == 0 then return forgotten_owner(mid) end
  local current = owner_in(memory) or owner_in(over)
  if current then return current end
  -- An import may contain aliases that form a circle, so follow only a few. Such aliases have no owner.
  local named = (hops or 0) < 4 and redis.call('GET', alias)
  local owner = named and owner_of(string.match(named, '^%S+'), (hops or 0) + 1)
  if owner then return owner end
  for _, member in ipairs(redis.call('ZREVRANGE', ledger, 0, -1)) do
    owner = string.match(member, '^%d') and owner_in(over .. '.' .. member)
    if owner then return owner end
  end
  return forgotten_owner(mid)
end
return {owner_of = owner_of}
