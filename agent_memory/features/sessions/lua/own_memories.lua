-- Returns the positions in `to_promote` of new memories, and by id the memories that the session already has unchanged.
-- `to_promote` has for each memory its id, JSON, mid, owner and creation time (µs, or ""); `memories` has id, digest of
-- the content, and creation time.
local function new_ones(to_promote, memories, meta)
  local new, unchanged, mark_by_id = {}, {}, {}
  if #to_promote == 0 then return new, unchanged end
  local marks = cjson.decode(meta and redis.call('HGET', meta, 'held') or '{}')
  for i = 1, #memories, 3 do mark_by_id[memories[i]] = memories[i + 1] end
  for i = 1, #to_promote, 5 do
    local id, created = to_promote[i], to_promote[i + 4]
    local known_mark, known_created = string.match(marks[id] or '', '^(%S+) (%S+)$')
    if known_mark == mark_by_id[id] and (created == '' or created == known_created) then
      unchanged[id] = true
    else
      new[#new + 1] = i
    end
  end
  return new, unchanged
end
-- Stores the digests of the session's memories (`held`). Only unchanged memories keep being marked as promoted (`pm`)
-- or refused (`pr`).
local function note(memories, meta, unchanged)
  local stored = redis.call('HMGET', meta, 'pm', 'pr', 'held')
  for at, name in ipairs({'pm', 'pr'}) do
    local still = {}
    for id, value in pairs(cjson.decode(stored[at] or '{}')) do
      if unchanged[id] then still[id] = value end
    end
    if next(still) then redis.call('HSET', meta, name, cjson.encode(still)) elseif stored[at] then redis.call('HDEL', meta, name) end
  end
  local marks = {}
  for i = 1, #memories, 3 do marks[memories[i]] = memories[i + 1] .. ' ' .. memories[i + 2] end
  if next(marks) then
    redis.call('HSET', meta, 'held', cjson.encode(marks))
  elseif stored[3] then
    redis.call('HDEL', meta, 'held')
  end
end
return {new_ones = new_ones, note = note}
