#!lua flags=allow-oom
-- Returns the data that a receipt keeps for an undo, or after the undo the names of the restored data. Changes nothing.
-- Refuses while an owner is being erased.
-- KEYS: receipt
-- ARGV: root, guard: json
-- -> {"gone"}, {"undone", names, answer of the undo} or {"kept", rows}
--    names: a line for each: "m <mid>", "s <sid> <sha1 of the entry>" (a message), "c <sid>" (a summary)
--    rows: {"memory", record, import (false if none)}, {"proposal", JSON} or {what, value, session, namespace, user}, where `what` is "message" (an entry),
--          "summary" (its text), "waiting" (a memory for promotion) or "memories" (of a session, value: JSON [before, after])
local erasures = require("storage/erasures")
local kept_keys = require("privacy/kept_keys")
local found = redis.call('HMGET', receipt, 't', 'undone', 'back')
if not found[1] then return {'gone'} end
local receipt_fields = kept_keys.fields_of(receipt)
kept_keys.refuse(receipt_fields, guard)
if found[2] then return {'undone', found[3] or '', found[2]} end
local rows = {}

-- True if forgetting deleted this version: the current one, or a former version of a memory that stays.
local function is_shown(name)
  local mid, version = string.match(name, '^%a:(%x+)%.?(%d*)$')
  if not mid or not receipt_fields['k ' .. mid] then return false end
  if version ~= '' then return receipt_fields['p ' .. mid] and redis.call('EXISTS', root .. name) == 0 end
  return not receipt_fields['p ' .. mid] and (string.sub(name, 1, 1) == 'm' or not receipt_fields['d m:' .. mid])
end
kept_keys.each_memory(receipt_fields, function(key, name)
  if is_shown(name) then rows[#rows + 1] = {'memory', unpack(redis.call('HMGET', key, 'j', 'im'), 1, 2)} end
end)
kept_keys.each_proposal(receipt_fields, function(proposal) rows[#rows + 1] = {'proposal', proposal} end)
-- An undo restores nothing of a session that has ended.
local function add_of_session(what, sid, value)
  local session = redis.call('HMGET', root .. 'w:' .. sid, 'sid', 'ns', 'us')
  if not session[1] or not kept_keys.is_same_session(receipt_fields, sid) then return end
  local owner = {s = erasures.tag(session[1]), ns = erasures.tag(session[2] or ''), u = erasures.tag(session[3] or '')}
  if erasures.is_active(guard) then erasures.raise(erasures.objection(guard, guard.t, owner)) end
  rows[#rows + 1] = {what, value, unpack(session, 1, 3)}
end
kept_keys.each(receipt_fields, '^e w:(%x+):m (%d+)$', function(sid, _, json) add_of_session('message', sid, cjson.decode(json)[1]) end)
kept_keys.each(receipt_fields, '^f w:(%x+) (%a+)$', function(sid, field, json)
  if field == 'ctx' then add_of_session('summary', sid, cjson.decode(json)[1]) end
  if field == 'mems' then add_of_session('memories', sid, json) end
end)
kept_keys.each(receipt_fields, '^f j:(%x+):o (.+)$', function(sid, _, json) add_of_session('waiting', sid, cjson.decode(json)[1]) end)
return {'kept', rows}
