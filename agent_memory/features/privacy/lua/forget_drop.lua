#!lua flags=allow-oom
-- Deletes a receipt of forgetting and frees its ids, if it holds something of the holder, or any without a holder:
-- `fields`: tags of a kept memory (s: one of its sessions); `words`: what its JSON says instead; `names`: of fields.
-- KEYS: receipt, receipts
-- ARGV: root, tenant, name, holder: json?
-- -> 1 deleted, 0 it holds nothing of theirs, or is another tenant's
local kept_keys = require("privacy/kept_keys")
if redis.call('HGET', receipt, 't') ~= tenant then return 0 end
local kept, flat = {}, redis.call('HGETALL', receipt)
for i = 1, #flat, 2 do kept[flat[i]] = flat[i + 1] end
local function is_theirs(key)
  for field, wanted in pairs(holder.fields) do
    local value = redis.call('HGET', key, field) or ''
    local has = field == 's' and string.find(',' .. value .. ',', ',' .. wanted .. ',', 1, true) or value == wanted
    if not has then return false end
  end
  return true
end
local function says(text)
  for _, words in ipairs(holder.words) do if string.find(text, words, 1, true) then return true end end
  return false
end
local function holds()
  local found = false
  for name, value in pairs(kept) do
    for _, part in ipairs(holder.names) do found = found or string.find(name, part, 1, true) end
    found = found or (string.match(name, '^[fe] ') and says(value))
  end
  if found then return true end
  kept_keys.each_memory(kept, function(key) found = found or is_theirs(key) or says(redis.call('HGET', key, 'j') or '') end)
  return found
end
if holder and not holds() then return 0 end
for name in pairs(kept) do
  local mid = string.match(name, '^o (%x+)$')
  if mid then redis.call('DEL', root .. 'fo:' .. mid) end
end
redis.call('DEL', receipt)
redis.call('ZREM', receipts, name)
return 1
