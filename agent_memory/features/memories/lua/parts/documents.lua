-- Keys of memories: `m:` (words) and `v:` (vector) for the current version, `h:<mid>.<version>` for a former one,
-- `h:<mid>` for a current version that has ended.
-- NEEDS: root
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
local function is_vector(name) return string.sub(name, 1, 2) == 'v_' end
-- Returns all fields of a current version with its vector, and true if it has a vector.
local function read(mid, key)
  local flat, has_vector = redis.call('HGETALL', key), false
  local fields = {}
  for i = 1, #flat, 2 do
    fields[flat[i]] = flat[i + 1]
    has_vector = has_vector or is_vector(flat[i])
  end
  if key == memory_key(mid) then
    local vector = redis.call('HGETALL', vector_key(mid))
    for i = 1, #vector, 2 do
      if is_vector(vector[i]) then
        fields[vector[i]] = vector[i + 1]
        has_vector = true
      end
    end
  end
  return fields, has_vector
end
local function flatten(fields)
  local flat = {}
  for name, value in pairs(fields) do
    flat[#flat + 1] = name
    flat[#flat + 1] = value
  end
  return flat
end
return {memory_key = memory_key, vector_key = vector_key, vector_keys = vector_keys, delete_passages = delete_passages,
  history_key = history_key, key_of = key_of, is_vector = is_vector, read = read, flatten = flatten}
