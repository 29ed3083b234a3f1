-- The steps that retire memories, restore former versions, and move changes to another state.
-- NEEDS: root, due, reach, neighbors_ms
local clock = require("storage/clock")
local outbox = require("storage/outbox")
local documents = require("memories/documents")
local follow_marks = require("memories/follow_marks")
local vector_tags = require("memories/vector_tags")
local standings = require("memories/standings")
local repetitions = require("memories/repetitions")
local history = require("memories/history")
local message_order = require("memories/message_order")
local change_log = require("memories/change_log")
local aliases = require("memories/aliases")
local retirement = require("memories/retirement")
local outdated_messages = require("memories/outdated_messages")
local function merge_into(mid, target, digest)
  -- The memory's aliases become aliases of the target. An undo gives them back.
  aliases.move_all(mid, target, function(name, name_digest) change_log.add('u', name, mid, name_digest or '') end)
  local evidence = redis.call('HGETALL', root .. 'ev:' .. mid)
  for i = 1, #evidence, 2 do
    if redis.call('HSETNX', root .. 'ev:' .. target, evidence[i], evidence[i + 1]) == 1 then change_log.add('e', target, evidence[i]) end
  end
  repetitions.refresh(target)
  aliases.set(mid, target, digest)
end
local function retire(step)
  local digest = redis.call('HGET', documents.key_of(step.mid), 'h')
  change_log.add('m', step.mid, retirement.retire(step.mid, step.order), '-')
  if step.alias then
    merge_into(step.mid, step.alias, digest)
  else
    redis.call('SET', root .. 'mt:' .. step.mid, clock.us_text(), 'EX', documents.TOMBSTONE_SECONDS)
  end
  return 'done'
end
-- Makes a former version the current one and returns its new version. It still shows when it was first recorded (`ro`),
-- but counts as known again only from now on (`ra`).
local function bring_back(mid, name)
  local fields, vector = documents.split(redis.call('HGETALL', documents.history_key(name)))
  local order, score = fields['ok'], fields['os']
  fields['ro'], fields['of'] = fields['ro'] or fields['ra'], fields['of'] or fields['n']
  fields['ra'], fields['rt'], fields['ok'], fields['os'] = clock.seconds_text(), nil, nil, nil
  fields['n'] = history.new_version()
  local key, vector_key = documents.memory_key(mid), documents.vector_key(mid)
  redis.call('HSET', key, unpack(documents.flatten(fields)))
  follow_marks.mark(mid)
  if #vector > 0 then
    redis.call('HSET', vector_key, unpack(vector))
    vector_tags.copy(mid)
  end
  -- Passages have no history: a long memory needs new ones.
  outbox.mark_due(due, clock.ms, mid)
  if order then message_order.insert(order, mid, score, neighbors_ms) end
  repetitions.refresh(mid)
  if fields['om'] then outdated_messages.mark(mid, fields['om'], fields['z']) end
  if history.is_over(key) then history.close(mid) else standings.link(mid, fields['bk']) end
  return fields['n']
end
local function restore(step)
  local current = documents.key_of(step.mid)
  redis.call('DEL', root .. 'mt:' .. step.mid)
  if current then outdated_messages.unmark(step.mid, redis.call('HGET', current, 'om')) end
  local before = current and retirement.retire(step.mid, step.order) or '-'
  local after = step.from ~= '' and bring_back(step.mid, step.mid .. '.' .. step.from) or '-'
  change_log.add('m', step.mid, before, after)
  return 'done'
end
local function yield(step)
  standings.unlink(step.mid, redis.call('HGET', documents.key_of(step.mid), 'bk'))
  return 'done'
end
local function check() return 'done' end
local function claim(step)
  local change = root .. 'ch:' .. step.id
  local origin = cjson.decode(redis.call('HGET', change, 'o') or '{}')
  origin.decided_by = step.by
  redis.call('HSET', change, 'st', step.to, 'o', cjson.encode(origin), 'ua', clock.seconds_text())
  if step.to ~= 'proposed' then redis.call('HDEL', change, 'p') end
  return 'done'
end
return {retire = retire, restore = restore, yield = yield, check = check, claim = claim}
