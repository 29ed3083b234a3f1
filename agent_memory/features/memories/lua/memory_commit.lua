#!lua
-- Changes long-term memories by steps in groups. If they were made from a session's journal, its cursor moves as well.
-- All of this is one change.
--   reach          a message is indexed with the words of this many messages before and after it
--   neighbors_ms  delay until the neighbors of a new message are indexed again
--   embed_after_ms delay until a put memory is due for embedding; its writer may embed it first
--   atomic         do all steps or none
--   fence          {sid, epoch, cursor, start, to, both, keep, own: [id, JSON…], refused: [id, JSON, reason…], at, fields?: [field, value…], grows?: [field, count]}
--   revised        {id, fields: [field, value…]}: the change to record when an owner's put changes a memory; the put's
--                  group number is appended to the id
--   groups         [{change: {id, fields: [field, value…], mids}?, steps: [step…]}…]
--   values         fields and values to put; steps refer to them by position, from 0
-- A step has an `op`. Its other members:
--   put: write a memory
--     mid, standing, expect (version; "" for none)
--     digest (nothing: keep the stored one), first_digest (of a new memory)
--     field_names, field_values, field_count: positions of the names and of the values, and their number
--     shared, shared_count: position and length of alternating names and values that several puts share
--     owner: position of the owner; an id of another owner is refused
--     deleted_since: 1 refuses a memory that was ever deleted, a time (µs) one that was deleted since
--     ends: it has an end or is in quarantine; edited: a caller changed its words
--     said_often: it has several pieces of evidence
--     unique: "kin" refuses if a memory not in `except` has its kin, "words" also if one has its words
--     slot: refuses if a memory not in `except` has its slot
--     order: key of its message order; leave: key of the order that it leaves
--     same_text: the text, and with it the vector, stays
--     outdates: for a superseded fact, the mids of the messages that it rests on, which are outdated with it
--     words_digest: for a statement; messages with its words become its evidence
--     message {field, statement_field, role, name, same_from, same_until, json, evidence_field, session}:
--       for a message. If `statement_field` or `field` already names a memory, the message is not stored: it becomes
--       evidence `json` of that memory, under `evidence_field`. If its words name a relative time, it repeats only a
--       message that was created from `same_from` until `same_until`.
--     shares: an earlier put of the call has its words or slot; refused, unless nothing would change
--   evidence: add a piece. mid, field, json, alias (a mid that becomes an alias), owner (as for a put), digest (of the
--     alias's record), put_before (an earlier step of the call writes the memory)
--   forget_evidence: remove a piece. mid, field, aliases and order (of messages that stop being aliases)
--   retire: move a memory to its history. mid, expect, order, alias (the mid whose alias it becomes)
--   restore: mid, from (version to restore, "" for none), to (version that it must have now, "" for none), order
--   alias: alias, mid, digest; unalias: alias
--   check: mid, expect; yield: mid, expect (frees its words and slot)
--   absorb: mid, scope, words_digest, order (makes messages evidence, as a put does)
--   inherit: mid, of (a mid), fields, names (adopts these pieces of evidence and aliases)
--   claim: id, state, to, by (moves a change from one state to another; `by`: who did it)
-- KEYS: due, tries, reasons, dead, wake
-- ARGV: root, reach: number, neighbors_ms: number, embed_after_ms: number, atomic: flag, guard: json, fence: json?, revised: json?
-- ARGV: groups: json, values...
-- -> {"ok", state of every step…}: "new", "changed", "same", "buried", "moved", "twin <mid>", "slot <mid>",
--    "again", "done", "skipped" (another step of its group was refused). If nothing was done: {"fenced"}, {"taken",
--    groups…} for ids of other owners, or with `atomic` {"moved", group, reason, what objects to each step or ""…}
local outbox = require("storage/outbox")
local follow_marks = require("memories/follow_marks")
local change_log = require("memories/change_log")
local same_words = require("memories/same_words")
local step_conditions = require("memories/step_conditions")
local step_put = require("memories/step_put")
local steps_of_history = require("memories/steps_of_history")
local steps_of_evidence = require("memories/steps_of_evidence")
local session_cursor = require("memories/session_cursor")
local erasures = require("storage/erasures")
local step_owners = require("memories/step_owners")
if session_cursor.has_moved() then return {'fenced'} end

if erasures.is_active(guard) then
  for g, group in ipairs(groups) do
    for _, step in ipairs(group.steps) do
      local reason = step_owners.objection(guard, step)
      if reason and atomic and guard.background then return {'moved', tostring(g), 'erased'} end
      erasures.raise(reason)
    end
  end
end

-- If an id belongs to another owner, refuse the whole call.
local refused_groups = {}
for g, group in ipairs(groups) do
  for _, step in ipairs(group.steps) do
    if step.owner and step_conditions.belongs_to_another(step) then
      refused_groups[#refused_groups + 1] = tostring(g)
    end
  end
end
if #refused_groups > 0 then return {'taken', unpack(refused_groups)} end

local objections, skipped, refusal = {}, {}, nil
if atomic then
  local every = {}
  for g, group in ipairs(groups) do
    objections[g] = {}
    for i, step in ipairs(group.steps) do
      local objection = step_conditions.against(step)
      objections[g][i] = objection
      every[#every + 1] = objection or ''
      if objection and objection ~= 'same' and objection ~= 'buried' then refusal = refusal or {'moved', tostring(g), objection} end
      if objection and #group.steps > 1 then skipped[g] = true end
    end
  end
  if refusal then
    for _, objection in ipairs(every) do refusal[#refusal + 1] = objection end
    return refusal
  end
end

local function do_step(step)
  if step.op == 'put' then return step_put.put(step) end
  return (steps_of_history[step.op] or steps_of_evidence[step.op])(step)
end
-- Records an owner's put that changed a memory as a separate change.
local function remember_revision(g, step)
  local fields, namespace, user, agent = {unpack(revised.fields)}, string.match(ARGV[values_at + step.owner], '^(%S*) (%S*) (%S*)')
  for name, value in pairs({ns = namespace, u = user, ag = agent}) do
    if value ~= '' then fields[#fields + 1], fields[#fields + 2] = name, value end
  end
  change_log.remember(revised.id .. string.format('%d', g), fields, {step.mid})
end
local states, wrote = {'ok'}, false
for g, group in ipairs(groups) do
  change_log.clear()
  local group_wrote = false
  for i, step in ipairs(group.steps) do
    local objection
    if not atomic then
      objection = step_conditions.against(step)
    else
      objection = objections[g][i]
      -- Look up again: an earlier step may have changed what this one depends on.
      if step.op == 'put' then same_words.look_up(step) end
    end
    local holder, without_position
    if not objection and step.message and not step.key then holder, without_position = same_words.said_before(step) end
    local state
    if holder then
      steps_of_evidence.cite(step, holder, without_position)
      wrote, state = true, 'again'
    elseif objection then
      state = objection
    elseif skipped[g] then
      state = 'skipped'
    else
      state = do_step(step)
      wrote, group_wrote = true, true
      if state == 'changed' and step.owner and revised and not group.change then remember_revision(g, step) end
    end
    states[#states + 1] = state
  end
  if group.change and (group_wrote or #group.steps == 0) then
    change_log.remember(group.change.id, group.change.fields, group.change.mids)
  end
end
if wrote then outbox.wake_dispatcher(wake) end
session_cursor.advance()
follow_marks.write()
return states
