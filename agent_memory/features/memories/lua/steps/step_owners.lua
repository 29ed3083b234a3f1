-- Finds steps on memories of owners who are being erased; see `storage/erasures.lua`.
-- NEEDS: root
local documents = require("memories/documents")
local erasures = require("storage/erasures")
local CHANGES = {put = true, restore = true, evidence = true, alias = true}
local function objection_to_put(guard, step)
  local owner, shared_at = {}, values_at + step.shared
  for i = shared_at, shared_at + step.shared_count - 1, 2 do owner[ARGV[i]] = ARGV[i + 1] end
  for i = 0, step.field_count - 1 do owner[ARGV[values_at + step.field_names + i]] = ARGV[values_at + step.field_values + i] end
  return erasures.objection(guard, owner.t, owner)
end
-- Applies `erasures.objection` to the record that a step writes or restores, and to the memory that it changes.
local function objection(guard, step)
  if not CHANGES[step.op] then return nil end
  local reason = step.op == 'put' and objection_to_put(guard, step)
  if step.op == 'restore' and step.from ~= '' then
    reason = erasures.objection_to_document(guard, documents.history_key(step.mid .. '.' .. step.from))
  end
  local key = documents.key_of(step.mid)
  return reason or (key and erasures.objection_to_document(guard, key)) or nil
end
return {objection = objection}
