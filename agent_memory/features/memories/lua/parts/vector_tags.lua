-- Copies a memory's tags to the documents of its vectors: one for the whole, and one for each passage, which have
-- their own terms (`k`).
-- NEEDS: root
local documents = require("memories/documents")
local NAMES = {'t', 'ns', 'u', 's', 'ty', 'st', 'tp', 'en', 'c', 'la', 'ls', 'e', 'da', 'ag', 'sl', 'ct', 'sc', 'tr', 'vf', 'z', 'b', 'ra', 'md'}
local function read(mid)
  local values = redis.call('HMGET', documents.memory_key(mid), unpack(NAMES))
  local set, unset = {}, {}
  for i, name in ipairs(NAMES) do
    if values[i] then
      set[#set + 1], set[#set + 2] = name, values[i]
    else
      unset[#unset + 1] = name
    end
  end
  return set, unset
end
-- Writes all tags again.
local function copy(mid)
  local set, unset = read(mid)
  for _, key in ipairs(documents.vector_keys(mid)) do
    if redis.call('EXISTS', key) == 1 then
      redis.call('HSET', key, unpack(set))
      if #unset > 0 then redis.call('HDEL', key, unpack(unset)) end
    end
  end
end
-- Writes the vector of the whole, and the terms and vector of each passage. `passages` alternates terms and vectors.
local function write(mid, field, vector, passages)
  local set = read(mid)
  documents.note_vector(mid)
  redis.call('DEL', unpack(documents.vector_keys(mid)))
  local key, count = documents.vector_key(mid), #passages / 2
  redis.call('HSET', key, field, vector, unpack(set))
  if count > 0 then redis.call('HSET', key, 'pn', count) end
  for i = 1, count do
    redis.call('HSET', root .. 'p:' .. mid .. '.' .. i, 'k', passages[2 * i - 1], field, passages[2 * i], 'pn', count, unpack(set))
  end
end
return {NAMES = NAMES, copy = copy, write = write}
