-- Keys of memories: `m:` (words) and `v:` (vector) for the current version, `h:<mid>.<version>` for a former one,
-- `h:<mid>` for a current version that has ended.
-- NEEDS: root
-- How long background work cannot restore a deleted memory. An undo can.
local TOMBSTONE_SECONDS = 2592000
local function memory_key(mid) return root .. 'm:' .. mid end
local function vector_key(mid) return root .. 'v:' .. mid end
-- Returns the keys of a memory's vectors: of the whole, which has the number of passages (`pn`), and of each passage.
local function vector_keys(mid)
  local keys = {vector_key(mid)}
  for i = 1, tonumber(redis.call('HGET', keys[1], 'pn') or 0) do keys[i + 1] = root .. 'p:' .. mid .. '.' .. i end
  return keys
end
local function delete_passages(mid)
  local keys = vector_keys(mid)
  if #keys == 1 then return end
  redis.call('DEL', unpack(keys, 2))
  redis.call('HDEL', keys[1], 'pn')
end
local function history_key(name) return root .. 'h:' .. name end
-- Returns the key of a memory's current version, ended or not; nil if there is none.
local function key_of(mid)
  local memory, over = memory_key(mid), history_key(mid)
  if redis.call('EXISTS', memory, over) == 0 then return nil end
  return redis.call('EXISTS', memory) == 1 and memory or over
end
-- Splits alternating names and values into a table of fields and the alternating names and values of vectors.
local function split(flat)
  local fields, vector = {}, {}
  for i = 1, #flat, 2 do
    if string.sub(flat[i], 1, 2) == 'v_' then
      vector[#vector + 1], vector[#vector + 2] = flat[i], flat[i + 1]
    else
      fields[flat[i]] = flat[i + 1]
    end
  end
  return fields, vector
end
-- Returns the fields and the vector of a current version.
local function read(mid, key)
  local fields, vector = split(redis.call('HGETALL', key))
  if key == memory_key(mid) then
    local _, stored = split(redis.call('HGETALL', vector_key(mid)))
    for _, part in ipairs(stored) do vector[#vector + 1] = part end
  end
  return fields, vector
end
-- Returns the alternating names and values of fields and, if given, of a vector.
local function flatten(fields, vector)
  local flat = {unpack(vector or {})}
  for name, value in pairs(fields) do flat[#flat + 1], flat[#flat + 2] = name, value end
  return flat
end
-- While the embedding model changes, each written vector lacks its twin of the other model: `re:todo` has the names.
-- `re:refused` has the names whose former texts a model refuses.
local function note_vector(name)
  if redis.call('EXISTS', root .. 're') == 0 then return end
  redis.call('SADD', root .. 're:todo', name)
  redis.call('SREM', root .. 're:refused', name)
end
-- True if the vectors of this field are being deleted, or are deleted.
local function is_gone(field) return (redis.call('HGET', root .. 'cfg', 'only') or field) ~= field end
return {memory_key = memory_key, vector_key = vector_key, vector_keys = vector_keys, delete_passages = delete_passages,
  history_key = history_key, key_of = key_of, split = split, read = read, flatten = flatten, note_vector = note_vector,
  is_gone = is_gone, TOMBSTONE_SECONDS = TOMBSTONE_SECONDS}
