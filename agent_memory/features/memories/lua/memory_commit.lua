#!lua
-- Changes long-term memories: steps on them, in groups, and, when they were made from a session's journal, its cursor. All is one change.
--   reach          how many messages around one are indexed with its words; neighbours_ms: until those are indexed again
--   embed_after_ms until what is put is due to be embedded: who writes it may embed it next
--   atomic         all or nothing
--   fence          {sid, epoch, cursor, start, to, both, keep, own: [id, JSON…], refused: [id, JSON, reason…], at, fields?: [field, value…], grows?: [field, count]}
--   revised        {id, fields: [field, value…]}: the change that is remembered when an owner's put changes a memory; its group is added
--                  to the id
--   groups         [{change: {id, fields: [field, value…], mids}?, steps: [step…]}…]
--   values         fields and values of what is put; steps count from 0 among them
-- A step has an `op`:
--   put      mid, order (key or nothing), digest (nothing: as it is; `first_digest`: of what is new), standing, field_names, field_values,
--            field_count (where the names of its fields stand and where their values), shared, shared_count (names and values in turns,
--            of what several have), deleted_since, ends (it has an end, or is in quarantine), owner (where its owner stands: an id of
--            another owner is refused), edited (somebody gave it other words), said_often (it names several pieces of evidence), outdates
--            (of a fact that was superseded: the messages, mids, that it rests on and that are no longer true with it), expect (version, ""
--            for none), unique ("kin" or "words": refuse when another memory than `except` holds its kin, or its words either) and slot (the
--            same of its slot), leave (order key to leave), same_text (and with
--            it the vector stays), imported (other content that is here stays, messages are put among those of their session by their time),
--            message {field, statement_field, role, name, same_from, same_until, json, evidence_field, session, created} (a message: it is evidence
--            `json` under `evidence_field` of what `statement_field` or `field` knows and not a memory beside it; when its words mean
--            another time at another time, of a message between `same_from` and `same_until` only),
--            words_digest (of a statement: messages that have its words become evidence of it)
--   evidence mid, field, json, alias (a mid that becomes another name of it) and owner (as of a put), digest (of what came under that name)
--   retire   mid, expect, order, alias (of which memory it becomes another name): it goes to its history
--   restore  mid, from (version, "" for none), to (version that it must have now, "" for none), order
--   forget_evidence mid, field, aliases and order (of messages that are other names of it, and no more); alias alias, mid, digest;
--   unalias alias; check mid, expect; yield mid, expect: its words and slot are free;
--   absorb   mid, scope, words_digest, order: as `put` does; inherit mid, of (a mid), fields, names: evidence and other names become its own
--   claim    id, state, to: moves a change from one state to another
-- `deleted_since` is 1 or the time (µs) of the write that it comes from: what was deleted since, or at all, is not brought back.
-- KEYS: due, tries, reasons, dead, wake
-- ARGV: root, reach: number, neighbours_ms: number, embed_after_ms: number, atomic: flag, guard: json, fence: json?, revised: json?
-- ARGV: groups: json, values...
-- -> {"fenced"}, {"taken", groups…} for ids of other owners, with `atomic` {"moved", group, what}, and nothing done, or
--    {"ok", state of every step…}: "new", "changed", "same", "buried", "moved", "other", "twin <mid>", "slot <mid>", "again", "done",
--    "skipped" (another step of its group was not done)
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

-- All or nothing: an id of another owner refuses the whole call. What comes from another server steps aside by itself.
local refused_groups = {}
for g, group in ipairs(groups) do
  for _, step in ipairs(group.steps) do
    if step.owner and not step.imported and step_conditions.belongs_to_another(step) then
      refused_groups[#refused_groups + 1] = tostring(g)
    end
  end
end
if #refused_groups > 0 then return {'taken', unpack(refused_groups)} end

local objections, skipped = {}, {}
if atomic then
  for g, group in ipairs(groups) do
    objections[g] = {}
    for i, step in ipairs(group.steps) do
      local objection = step_conditions.against(step)
      objections[g][i] = objection
      if objection and objection ~= 'same' and objection ~= 'buried' then return {'moved', tostring(g), objection} end
      if objection and #group.steps > 1 then skipped[g] = true end
    end
  end
end

local function do_step(step)
  if step.op == 'put' then return step_put.put(step) end
  return (steps_of_history[step.op] or steps_of_evidence[step.op])(step)
end
-- An owner's put that changed a memory is remembered as a change of its own.
local function remember_revision(g, step)
  local fields, namespace, user = {unpack(revised.fields)}, string.match(ARGV[values_at + step.owner], '^(%S*) (%S*) ')
  for name, value in pairs({ns = namespace, u = user}) do
    if value ~= '' then
      fields[#fields + 1] = name
      fields[#fields + 1] = value
    end
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
      -- Anew: steps before it may have changed what it stands on.
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
