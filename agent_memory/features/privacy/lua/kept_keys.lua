-- Reads the keys that a receipt of forgetting keeps in the format of DUMP.
-- NEEDS: root
local LOOK = root .. 'fg-look'
-- Calls `look(key)` for each kept version of a memory, restored as a temporary key.
local function each_memory(receipt_fields, look)
  for name, dump in pairs(receipt_fields) do
    if string.match(name, '^d [mh]:') then
      redis.call('RESTORE', LOOK, 0, dump, 'REPLACE')
      look(LOOK)
    end
  end
  redis.call('DEL', LOOK)
end
-- Returns the fields of a receipt by name.
local function fields_of(receipt)
  local fields, flat = {}, redis.call('HGETALL', receipt)
  for i = 1, #flat, 2 do fields[flat[i]] = flat[i + 1] end
  return fields
end

-- Calls `act(captures of the pattern, value)` for each field whose name matches a pattern with one or two captures.
local function each(receipt_fields, pattern, act)
  for name, value in pairs(receipt_fields) do
    local first, second = string.match(name, pattern)
    if second then act(first, second, value) elseif first then act(first, value) end
  end
end

return {each_memory = each_memory, fields_of = fields_of, each = each}
