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
return {each_memory = each_memory}
