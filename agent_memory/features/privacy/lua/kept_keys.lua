-- Looks into the keys that a receipt of forgetting keeps as DUMP gives them.
-- NEEDS: root
local LOOK = root .. 'fg-look'
-- Calls `look(key)` with each version of a memory that is kept (`receipt_fields`: the receipt's fields), as a key that is there meanwhile.
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
