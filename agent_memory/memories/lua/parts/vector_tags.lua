-- A vector's document carries the tags of its memory; here they are written anew, with the vector or without.
local NAMES = {'t', 'ns', 'u', 's', 'ty', 'st', 'tp', 'en', 'c', 'la', 'ls', 'e', 'ag', 'sl', 'ct', 'sc', 'tr', 'vf', 'z', 'b', 'ra', 'md'}
local function copy(memory, vector_document, field, vector)
  local values = redis.call('HMGET', memory, unpack(NAMES))
  local set, unset = {}, {}
  for i, name in ipairs(NAMES) do
    if values[i] then
      set[#set + 1] = name
      set[#set + 1] = values[i]
    else
      unset[#unset + 1] = name
    end
  end
  if field then
    redis.call('DEL', vector_document)
    redis.call('HSET', vector_document, field, vector, unpack(set))
  elseif redis.call('EXISTS', vector_document) == 1 then
    redis.call('HSET', vector_document, unpack(set))
    if #unset > 0 then redis.call('HDEL', vector_document, unpack(unset)) end
  end
end
return {NAMES = NAMES, copy = copy}
