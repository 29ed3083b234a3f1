#!lua flags=allow-oom
-- Deletes a receipt of forgetting and frees its ids, if it contains data of `holder`, or always without a holder.
-- Data is the holder's if a kept memory has all tags in `fields` (s: one of its sessions), if JSON contains one of
-- `words`, or if the name of a receipt's field contains one of `names`.
-- KEYS: receipt, receipts
-- ARGV: root, tenant, name, holder: json?
-- -> 1 if deleted; 0 if it contains no data of the holder, or belongs to another tenant
local kept_keys = require("privacy/kept_keys")
if redis.call('HGET', receipt, 't') ~= tenant then return 0 end
local receipt_fields = kept_keys.fields_of(receipt)
local function is_theirs(key)
  for field, expected in pairs(holder.fields) do
    local value = redis.call('HGET', key, field) or ''
    local has = field == 's' and string.find(',' .. value .. ',', ',' .. expected .. ',', 1, true) or value == expected
    if not has then return false end
  end
  return true
end
local function says(text)
  for _, words in ipairs(holder.words) do if string.find(text, words, 1, true) then return true end end
  return false
end
local function holds()
  local is_named = false
  for name, value in pairs(receipt_fields) do
    -- After an undo, `back` names the sessions whose messages came back.
    for _, part in ipairs(holder.names) do is_named = is_named or string.find(name == 'back' and value or name, part, 1, true) end
    is_named = is_named or (string.match(name, '^[fe] ') and says(value))
  end
  if is_named then return true end
  kept_keys.each_memory(receipt_fields, function(key) is_named = is_named or is_theirs(key) or says(redis.call('HGET', key, 'j') or '') end)
  kept_keys.each_proposal(receipt_fields, function(proposal) is_named = is_named or says(proposal) end)
  return is_named
end
if holder and not holds() then return 0 end
kept_keys.each(receipt_fields, '^o (%x+)$', function(mid) redis.call('DEL', root .. 'fo:' .. mid) end)
redis.call('DEL', receipt)
redis.call('ZREM', receipts, name)
return 1
