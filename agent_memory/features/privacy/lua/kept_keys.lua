-- Reads the keys that a receipt of forgetting keeps in the format of DUMP.
-- NEEDS: root
local erasures = require("storage/erasures")
local LOOK = root .. 'fg-look'
-- Calls `look(key, name)` for each kept key that matches `pattern`, restored as a temporary key. `name` is its own key, without the root.
local function each_key(receipt_fields, pattern, look)
  for name, dump in pairs(receipt_fields) do
    local own = string.match(name, pattern)
    if own then
      redis.call('RESTORE', LOOK, 0, dump, 'REPLACE')
      look(LOOK, own)
    end
  end
  redis.call('DEL', LOOK)
end
-- Calls `look(key, name)` for each kept version of a memory.
local function each_memory(receipt_fields, look) each_key(receipt_fields, '^d ([mh]:.+)$', look) end
-- Calls `look(JSON)` for each kept proposal.
local function each_proposal(receipt_fields, look)
  each_key(receipt_fields, '^d (ch:.+)$', function(key)
    local proposal = redis.call('HGET', key, 'p')
    if proposal then look(proposal) end
  end)
end
-- Raises an error while an erasure of the receipt's owner, or of the owner of a kept memory, is under way.
local function refuse(receipt_fields, guard)
  erasures.refuse(guard)
  if not erasures.is_active(guard) then return end
  local reason
  each_memory(receipt_fields, function(key) reason = reason or erasures.objection_to_document(guard, key) end)
  erasures.raise(reason)
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
-- False if the session with this name was created after forgetting, in place of the one that lost data.
local function is_same_session(receipt_fields, sid)
  local before, now = receipt_fields['b ' .. sid], redis.call('HGET', root .. 'w:' .. sid, 'ca')
  return not before or not now or now == before
end

return {each_memory = each_memory, each_proposal = each_proposal, refuse = refuse, fields_of = fields_of, each = each, is_same_session = is_same_session}
