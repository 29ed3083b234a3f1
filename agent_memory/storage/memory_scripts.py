"""The Lua of changes to long-term memories: a change is a list of steps, all of a call are one atomic change."""

from __future__ import annotations

from agent_memory.storage.memory_places import PLACES
from agent_memory.storage.outbox_scripts import PRELUDE
from agent_memory.storage.owner_scripts import OWNERS
from agent_memory.storage.telling_scripts import ABSORB, SAID_BEFORE

# Steps on memories and, when they were made from a session's journal, its cursor.
# KEYS due:memory, try:memory, why:memory, dead:memory, wake
# ARGV header {root, reach, near (ms until neighbours are indexed again), atomic: bool,
#   fence: {sid, ep, cur, from, to, both, keep, own: [id, json…], refused: [id, json, reason…], at}?,
#   revised: {id, fields: [f, v…]}? (the change that is remembered when an owner's put changes a memory; its group is added to the id),
#   groups: [{change: {id, fields: [f, v…]}?, steps: [step…]}…]}, then the fields and values of what is put.
# A step has an `op`:
#   put      mid, order (key or nothing), dig (nothing: as it is), bk (its `Standing`), names, first, count (where in ARGV the names of its
#            fields stand and where their values), alike, more (names and values in turns, of what several have), late, ends (it has an
#            end, or is in quarantine), own (where in ARGV its owner stands: an id of another owner is refused),
#            expect (version, "" for none), once ("kin" or "words": refuse when another memory than `among`
#            has its kin, or its words either) and slot (the same of its slot), leave (order key to leave), same (the text stays, and with
#            it the vector), past (other content that is here stays, messages are put among those of their session by their time),
#            turn {field, w, role, day, dated, json, name} (a message: it is evidence `json` under `name` of what `w` or `field` knows and
#            not a memory beside it; when its words mean another day on another `day` (`dated`), of a message of the same day only),
#            said (words: messages that have them become evidence of this)
#   evidence mid, field, json, alias (a mid that becomes another name of it) and own (as of a put), dig (of what came under that name)
#   retire   mid, expect, order, alias (of which memory it becomes another name): it goes to its history
#   restore  mid, from (version, "" for none), to (version that it must have now, "" for none)
#   forget-evidence mid, field, alias and order (of a message that is another name of it, and no more); alias alias, mid, dig;
#   unalias alias; check mid, expect; yield mid, expect: its words and slot are free;
#   absorb mid, sc, said, order: as `put` does; inherit mid, of (a mid), fields, names: evidence and other names become this one's
#   claim    id, state, to: moves a change from one state to another
# `late` is 1 or the time (µs) of the write that it comes from: what was deleted since, or at all, is not brought back.
# -> {"fenced"}, {"taken", groups…} for ids of other owners, with `atomic` {"moved", group, what}, and nothing done, or
#    {"ok", state of every step…}: "new", "changed", "same",
#    "buried", "moved", "other", "twin <mid>", "slot <mid>", "again", "done", "skipped" (another step of its group was not done)
MEMORY_COMMIT = (
    PRELUDE
    + """
local h = cjson.decode(ARGV[1])
local R, DUE, TRIES, WHY, DEAD = h.root, KEYS[1], KEYS[2], KEYS[3], KEYS[4]
"""
    + PLACES
    + """
local f = h.fence
local j = f and R .. 'j:' .. f.sid
if f then
  local at = redis.call('HMGET', j, 'ep', f.cur)
  if at[1] ~= f.ep or tonumber(at[2] or '-1') ~= f.from then return {'fenced'} end
end
"""
    + OWNERS
    + """
-- All or nothing: an id of another owner refuses the whole call. What comes from another server steps aside by itself.
local taken_by_others = {}
for g, group in ipairs(h.groups) do
  for _, s in ipairs(group.steps) do
    local owner = s.own and not s.past and owner_of(s.alias or s.mid)
    if owner and owner ~= ARGV[s.own] then taken_by_others[#taken_by_others + 1] = tostring(g) end
  end
end
if #taken_by_others > 0 then return {'taken', unpack(taken_by_others)} end
local function buried(mid, late)
  local at = late and redis.call('GET', R .. 'mt:' .. mid)
  return at and (late == '1' or tonumber(at) >= tonumber(late))
end
local function version(mid)
  local key = home(mid)
  return key and redis.call('HGET', key, 'n') or ''
end
-- Whether a version is the current one, or what an undo made of it.
local function stands(mid, wanted)
  local key = home(mid)
  if not key then return wanted == '' end
  local at = redis.call('HMGET', key, 'n', 'of')
  return at[1] == wanted or at[2] == wanted
end
"""
    + SAID_BEFORE
    + """
-- Why a step is not to be done; nil when it is.
local function against(s)
  if s.op == 'put' then
    look(s)
    local key = s.home
    local old = key and redis.call('HMGET', key, 'h', 'n') or {}
    if buried(s.mid, s.late) then return 'buried' end
    if s.past then
      local owner = owner_of(s.mid)
      if owner and owner ~= ARGV[s.own] then return 'other' end
    end
    if s.expect and (old[2] or '') ~= s.expect then return 'moved' end
    if s.dig and old[1] == s.dig then return 'same' end
    if s.past and key then return 'other' end
    if not key then
      local alias = s.told
      if alias and string.match(alias, ' (.*)$') == s.dig then return s.past and 'same' or s.late and 'buried' or 'same' end
      local other = s.once and (taken(s, s.by[1]) or s.once == 'words' and taken(s, s.by[3]))
      if other then return 'twin ' .. other end
    end
    local other = s.slot and taken(s, s.by[2])
    if other then return 'slot ' .. other end
  elseif s.op == 'restore' then
    if not stands(s.mid, s.to) then return 'moved' end
    if s.from ~= '' and redis.call('EXISTS', hk(s.mid .. '.' .. s.from)) == 0 then return 'moved' end
  elseif s.op == 'claim' then
    if redis.call('HGET', R .. 'ch:' .. s.id, 'st') ~= s.state then return 'moved' end
  elseif s.expect and version(s.mid) ~= s.expect then
    return 'moved'
  elseif s.op == 'evidence' then
    if not home(s.mid) then return 'moved' end
    if s.alias and buried(s.alias, s.late) then return 'buried' end
    if s.alias and home(s.alias) then return 'moved' end
  end
  return nil
end
local verdicts, skipped = {}, {}
for g, group in ipairs(h.groups) do
  verdicts[g] = {}
  for i, s in ipairs(group.steps) do
    local why = h.atomic and against(s) or nil
    verdicts[g][i] = why
    if why and why ~= 'same' and why ~= 'buried' then return {'moved', tostring(g), why} end
    if why and #group.steps > 1 then skipped[g] = true end
  end
end
local out, dirty, log = {'ok'}, false, {}
local function place(order, mid, score)
  if redis.call('ZSCORE', order, mid) then return end
  local last = redis.call('ZREVRANGE', order, 0, h.reach - 1, 'WITHSCORES')
  redis.call('ZADD', order, score or math.max(tonumber(last[2]) or 0, 0) + 1, mid)
  if score then
    for _, other in ipairs(around(order, mid, h.reach)) do due(DUE, MS, other) end
  else
    -- Its neighbours are found already, and are indexed with its words when those that follow it have come, too.
    for i = 1, #last, 2 do due(DUE, MS + h.near, last[i]) end
  end
end
local function alias(name, mid, dig)
  redis.call('SET', R .. 'al:' .. name, mid .. ' ' .. (dig or ''))
  redis.call('ZADD', R .. 'mh:' .. mid, US, 'a' .. name)
  log[#log + 1] = 'a ' .. name .. ' ' .. mid
end
local function unalias(name)
  local target = redis.call('GET', R .. 'al:' .. name)
  if target then
    redis.call('ZREM', R .. 'mh:' .. string.match(target, '^%S+'), 'a' .. name)
    redis.call('DEL', R .. 'al:' .. name)
  end
end
"""
    + ABSORB
    + """
local does = {}
function does.put(s)
  local mid, key, from, told = s.mid, mk(s.mid), s.home, s.told
  local before = '-'
  local dig = s.dig or s.given or from and redis.call('HGET', from, 'h') or ''
  if told then
    -- Other words under the id of what was evidence: it is that no more.
    local of = string.match(told, '^%S+')
    unalias(mid)
    if redis.call('HDEL', R .. 'ev:' .. of, 'm' .. mid) == 1 then retag(of) end
  end
  if from then
    local bk
    before, bk = archive(mid, from)
    unlink(mid, bk)
    if from == key then
      redis.call('HDEL', key, 'k', 'ro', 'of', 'bk', 'q', 'es', unpack(MIRRORED))
    else
      redis.call('RENAME', from, key)
      local fields = whole(mid, key)
      local vector = {}
      for name, value in pairs(fields) do
        if string.sub(name, 1, 2) == 'v_' then
          vector[#vector + 1] = name
          vector[#vector + 1] = value
        end
      end
      redis.call('DEL', key)
      if #vector > 0 then redis.call('HSET', vk(mid), unpack(vector)) end
    end
  end
  redis.call('DEL', R .. 'mt:' .. mid)
  local n = string.format('%.0f', stamp)
  stamp = stamp + 1
  -- In one command: each one would index the memory anew.
  local fields = {unpack(ARGV, s.alike, s.alike + s.more - 1)}
  local at = #fields
  for i = 0, s.count - 1 do
    fields[at + 1], fields[at + 2] = ARGV[s.names + i], ARGV[s.first + i]
    at = at + 2
  end
  redis.call('HSET', key, 'h', dig, 'n', n, 'ra', NOW, 'bk', s.bk, unpack(fields))
  if from then mirror(key, vk(mid)) end
  if s.leave then leave(s.leave, mid, h.reach) end
  -- By its own time: negative, so before all that arrive by themselves, whose places are counted from 1; the clock's 15 µs are kept.
  if s.order then place(s.order, mid, s.past and tonumber(redis.call('HGET', key, 'c')) - 1e11) end
  log[#log + 1] = 'm ' .. mid .. ' ' .. before .. ' ' .. n
  if not (s.same and redis.call('EXISTS', vk(mid)) == 1) or redis.call('HEXISTS', key, 'pl') == 1 then due(DUE, MS, mid) end
  local over = s.ends and ended(key)
  if over then
    close(mid)
  elseif from or s.by[1] or s.by[2] or s.by[3] then
    link(mid, s.bk)
  else
    local known = {s.words, mid}
    if s.kin ~= '' then known[3], known[4] = s.kin, mid end
    if s.held ~= '' then known[#known + 1], known[#known + 2] = s.held, mid end
    redis.call('HSET', R .. 'by:' .. s.sc, unpack(known))
  end
  if from then
    retag(mid)
  elseif s.said and not over then
    absorb(s)
  end
  return from and 'changed' or 'new'
end
function does.evidence(s)
  if redis.call('HSETNX', R .. 'ev:' .. s.mid, s.field, s.json) == 1 then log[#log + 1] = 'e ' .. s.mid .. ' ' .. s.field end
  retag(s.mid)
  if s.alias then alias(s.alias, s.mid, s.dig) end
  return 'done'
end
function does.retire(s)
  local given = redis.call('HGET', home(s.mid), 'h')
  local n = retire(s.mid, s.order, h.reach)
  log[#log + 1] = 'm ' .. s.mid .. ' ' .. n .. ' -'
  if s.alias then
    for _, member in ipairs(redis.call('ZRANGE', R .. 'mh:' .. s.mid, 0, -1)) do
      -- Other names of it become names of what it is merged into, and are its own again when that is undone.
      if string.sub(member, 1, 1) == 'a' then
        local name = string.sub(member, 2)
        local dig = string.match(redis.call('GET', R .. 'al:' .. name) or '', ' (.*)$')
        unalias(name)
        alias(name, s.alias, dig)
        log[#log + 1] = 'u ' .. name .. ' ' .. s.mid .. ' ' .. (dig or '')
      end
    end
    local evidence = redis.call('HGETALL', R .. 'ev:' .. s.mid)
    for i = 1, #evidence, 2 do
      if redis.call('HSETNX', R .. 'ev:' .. s.alias, evidence[i], evidence[i + 1]) == 1 then
        log[#log + 1] = 'e ' .. s.alias .. ' ' .. evidence[i]
      end
    end
    retag(s.alias)
    alias(s.mid, s.alias, given)
  else
    -- Forgotten: background work does not bring it back, an undo does.
    redis.call('SET', R .. 'mt:' .. s.mid, string.format('%.0f', US), 'EX', 2592000)
  end
  return 'done'
end
function does.restore(s)
  local mid, before = s.mid, '-'
  local key = home(mid)
  redis.call('DEL', R .. 'mt:' .. mid)
  if key then before = retire(mid, s.order, h.reach) end
  if s.from ~= '' then
    local flat = redis.call('HGETALL', hk(mid .. '.' .. s.from))
    local fields, vector = {}, {}
    for i = 1, #flat, 2 do
      if string.sub(flat[i], 1, 2) == 'v_' then
        vector[#vector + 1] = flat[i]
        vector[#vector + 1] = flat[i + 1]
      else
        fields[flat[i]] = flat[i + 1]
      end
    end
    local order, score = fields['ok'], fields['os']
    -- Shown as recorded when it was; known again from now on.
    fields['ro'], fields['of'] = fields['ro'] or fields['ra'], fields['of'] or fields['n']
    fields['ra'], fields['rt'], fields['ok'], fields['os'] = NOW, nil, nil, nil
    fields['n'] = string.format('%.0f', stamp)
    stamp = stamp + 1
    redis.call('HSET', mk(mid), unpack(flattened(fields)))
    if #vector > 0 then
      redis.call('HSET', vk(mid), unpack(vector))
      mirror(mk(mid), vk(mid))
    else
      due(DUE, MS, mid)
    end
    if order then place(order, mid, score) end
    retag(mid)
    if ended(mk(mid)) then close(mid) else link(mid, fields['bk']) end
    log[#log + 1] = 'm ' .. mid .. ' ' .. before .. ' ' .. fields['n']
  else
    log[#log + 1] = 'm ' .. mid .. ' ' .. before .. ' -'
  end
  return 'done'
end
does['forget-evidence'] = function(s)
  redis.call('HDEL', R .. 'ev:' .. s.mid, s.field)
  if s.alias and string.match(redis.call('GET', R .. 'al:' .. s.alias) or '', '^%S+') == s.mid then
    unalias(s.alias)
    if s.order then leave(s.order, s.alias, h.reach) end
    local key = home(s.mid)
    if key and string.match(redis.call('HGET', key, 'pl') or '', '^%S+') == s.alias then
      redis.call('HDEL', key, 'pl')
      due(DUE, MS, s.mid)
    end
  end
  retag(s.mid)
  return 'done'
end
function does.absorb(s)
  if redis.call('EXISTS', mk(s.mid)) == 1 then absorb(s) end
  return 'done'
end
function does.yield(s)
  unlink(s.mid, redis.call('HGET', home(s.mid), 'bk'))
  return 'done'
end
function does.inherit(s)
  for _, field in ipairs(s.fields) do
    local json = redis.call('HGET', R .. 'ev:' .. s.of, field)
    if json then redis.call('HSETNX', R .. 'ev:' .. s.mid, field, json) end
    redis.call('HDEL', R .. 'ev:' .. s.of, field)
  end
  for _, name in ipairs(s.names) do
    local dig = string.match(redis.call('GET', R .. 'al:' .. name) or '', ' (.*)$')
    unalias(name)
    alias(name, s.mid, dig)
  end
  retag(s.mid)
  return 'done'
end
function does.alias(s)
  unalias(s.alias)
  alias(s.alias, s.mid, s.dig)
  return 'done'
end
function does.check()
  return 'done'
end
function does.unalias(s)
  local target = redis.call('GET', R .. 'al:' .. s.alias)
  if target then log[#log + 1] = 'u ' .. s.alias .. ' ' .. target end
  unalias(s.alias)
  return 'done'
end
function does.claim(s)
  redis.call('HSET', R .. 'ch:' .. s.id, 'st', s.to, 'ua', NOW)
  if s.to ~= 'proposed' then redis.call('HDEL', R .. 'ch:' .. s.id, 'p') end
  return 'done'
end
local function remember(change)
  local key = R .. 'ch:' .. change.id
  local items = table.concat(log, '\\n')
  redis.call('HSET', key, 'at', NOW, 'i', items, 'ms', table.concat(change.mids, ' '), unpack(change.fields))
  for _, mid in ipairs(change.mids) do redis.call('ZADD', R .. 'mh:' .. mid, US, 'c' .. change.id) end
end
for g, group in ipairs(h.groups) do
  log = {}
  local some = false
  for i, s in ipairs(group.steps) do
    local why = verdicts[g][i]
    if not h.atomic then
      why = against(s)
    elseif s.op == 'put' then
      look(s)
    end
    local again, bare
    if not why and s.turn and not s.home then again, bare = said_before(s) end
    if again then
      does.evidence({mid = again, field = s.turn.name, json = s.turn.json, alias = s.mid, dig = s.dig})
      if s.order then place(s.order, s.mid, s.past and s.turn.c - 1e11) end
      if bare and s.turn.s and redis.call('HSETNX', mk(again), 'pl', s.mid .. ' ' .. s.turn.s) == 1 then due(DUE, MS, again) end
      dirty = true
      out[#out + 1] = 'again'
    elseif why then
      out[#out + 1] = why
    elseif skipped[g] then
      out[#out + 1] = 'skipped'
    else
      local state = does[s.op](s)
      out[#out + 1] = state
      dirty, some = true, true
      if state == 'changed' and s.own and h.revised and not group.change then
        local fields, namespace, user = {unpack(h.revised.fields)}, string.match(ARGV[s.own], '^(%S*) (%S*) ')
        for name, value in pairs({ns = namespace, u = user}) do
          if value ~= '' then
            fields[#fields + 1] = name
            fields[#fields + 1] = value
          end
        end
        remember({id = h.revised.id .. string.format('%d', g), fields = fields, mids = {s.mid}})
      end
    end
  end
  if group.change and (some or #group.steps == 0) then remember(group.change) end
end
if dirty then wake(KEYS[5]) end
if f then
  local meta, list, own = R .. 'w:' .. f.sid, j .. ':l', j .. ':o'
  local to = string.format('%.0f', f.to)
  redis.call('HSET', j, f.cur, to)
  if f.both then redis.call('HSET', j, 'je', to) end
  if f.cur == 'je' then redis.call('HDEL', j, 'x0', 'xt') end
  local at = redis.call('HMGET', j, 'sq', 'jb', 'jp', 'je')
  local worked = math.min(tonumber(at[3]), tonumber(at[4]))
  local low = worked - f.keep
  local live = redis.call('EXISTS', meta) == 1
  local stored, refused = {}, {}
  -- Other words under the same id came meanwhile: they still wait.
  for i = 1, #f.own, 2 do
    if redis.call('HGET', own, f.own[i]) == f.own[i + 1] then stored[#stored + 1] = f.own[i] end
  end
  for i = 1, #f.refused, 3 do
    if redis.call('HGET', own, f.refused[i]) == f.refused[i + 1] then refused[f.refused[i]] = f.refused[i + 2] end
  end
  for _, id in ipairs(stored) do redis.call('HDEL', own, id) end
  for id in pairs(refused) do redis.call('HDEL', own, id) end
  local idle = worked >= tonumber(at[1]) and redis.call('EXISTS', own) == 0
  -- The journal of a session that is gone goes when its work is settled, which still has to know whose it was.
  if low > tonumber(at[2]) then
    redis.call('LTRIM', list, low - tonumber(at[2]), -1)
    redis.call('HSET', j, 'jb', string.format('%.0f', low))
  end
  if live then
    local ttl = redis.call('TTL', meta)
    if ttl > 0 and idle then
      redis.call('EXPIRE', j, ttl + 60)
      redis.call('EXPIRE', list, ttl + 60)
    end
    if f.cur == 'jp' then redis.call('HSET', meta, 'pt', string.format('%.0f', US)) end
    if #stored > 0 then
      local promoted = cjson.decode(redis.call('HGET', meta, 'pm') or '{}')
      for _, id in ipairs(stored) do promoted[id] = f.at end
      redis.call('HSET', meta, 'pm', cjson.encode(promoted))
    end
    if next(refused) then
      local known = cjson.decode(redis.call('HGET', meta, 'pr') or '{}')
      for id, reason in pairs(refused) do known[id] = reason end
      redis.call('HSET', meta, 'pr', cjson.encode(known))
    end
  end
end
return out
"""
)
