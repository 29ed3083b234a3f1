#!lua
-- Updates timelines with memories as they were read; memories that changed since are skipped.
--   items  [{mid, state: [n, ls, ts, evidence…, "over" or ""] (empty: it is gone), owner (none: it is in no timeline), user_key,
--          namespace (as a tag or ""), identity (JSON), events: [{m: its name, b: first day, e: last day (none: open), f: [topic, entity or
--          precision…], h: what a summary would say of it, p: [[period, when (s) it ends]…], j: JSON}…]}…]
--   stamp  a new word, which marks this call's changes
-- Each owner has a hash of memories (m<mid>: names, facets and periods of their events), events (e<name>), owner (o) and user (u); sets of
-- all events, and of each topic, entity and precision, by first day (:b), and of longer events by last day (:e). The hash :s counts events
-- (c<period>) and has summaries (<period>), deleted when an event of the period changes: then it waits (g<period>: stamp and end; :p).
-- KEYS: any
-- ARGV: root, stamp, items: json
-- -> per item 1, or 0 if its memory changed
local waiting_periods = require("timeline/waiting_periods")
local done = {}
local function sets(base, head, visit)
  visit(base .. ':b', base .. ':e')
  for _, name in ipairs(head.f) do visit(base .. ':b:' .. name, base .. ':e:' .. name) end
end
local function heads_of(owner, mid)
  local json = owner and redis.call('HGET', root .. 'tl:' .. owner, 'm' .. mid)
  return json and cjson.decode(json) or {}
end
-- An empty timeline is deleted.
local function drop_empty(owner, base)
  local user_key = redis.call('HGET', base, 'u')
  if redis.call('HLEN', base) > 2 then return end
  redis.call('DEL', base)
  redis.call('HDEL', root .. 'tlu:' .. user_key, owner)
end
local function take_out(owner, mid)
  local base = root .. 'tl:' .. owner
  for _, head in ipairs(heads_of(owner, mid)) do
    sets(base, head, function(starts, ends)
      redis.call('ZREM', starts, head.m)
      redis.call('ZREM', ends, head.m)
    end)
    redis.call('HDEL', base, 'e' .. head.m)
  end
  redis.call('HDEL', base, 'm' .. mid)
  redis.call('DEL', root .. 'tlo:' .. mid)
  drop_empty(owner, base)
end
local function put_in(item)
  local base, heads = root .. 'tl:' .. item.owner, {}
  for i, event in ipairs(item.events) do
    sets(base, event, function(starts, ends)
      redis.call('ZADD', starts, event.b, event.m)
      if event.e ~= event.b then redis.call('ZADD', ends, event.e or '+inf', event.m) end
    end)
    redis.call('HSET', base, 'e' .. event.m, event.j)
    heads[i] = {m = event.m, f = event.f, h = event.h, p = event.p}
  end
  redis.call('HSET', base, 'm' .. item.mid, cjson.encode(heads), 'o', item.identity, 'u', item.user_key)
  redis.call('SET', root .. 'tlo:' .. item.mid, item.owner)
  redis.call('HSET', root .. 'tlu:' .. item.user_key, item.owner, item.namespace)
end
local function note_periods(owner, before, after)
  local key, waits = root .. 'tl:' .. owner .. ':s', root .. 'tl:' .. owner .. ':p'
  local former, counts, changed = {}, {}, {}
  for _, head in ipairs(before) do former[head.m] = head.h end
  local function count(heads, by, other)
    for _, head in ipairs(heads) do
      for _, period in ipairs(head.p) do
        counts[period[1]] = (counts[period[1]] or 0) + by
        if other[head.m] ~= head.h then changed[period[1]] = period[2] end
      end
    end
  end
  local latter = {}
  for _, head in ipairs(after) do latter[head.m] = head.h end
  count(before, -1, latter)
  count(after, 1, former)
  for period, by in pairs(counts) do
    if by ~= 0 and redis.call('HINCRBY', key, 'c' .. period, by) <= 0 then
      redis.call('HDEL', key, 'c' .. period, 'g' .. period, period)
      redis.call('ZREM', waits, period)
    elseif changed[period] then
      redis.call('HDEL', key, period)
      redis.call('HSET', key, 'g' .. period, stamp .. ' ' .. string.format('%d', changed[period]))
      redis.call('ZADD', waits, changed[period], period)
    end
  end
  if next(changed) then waiting_periods.note(owner) end
end
local function has_changed(item)
  local key, over = root .. 'm:' .. item.mid, ''
  if redis.call('EXISTS', key) == 0 then key, over = root .. 'h:' .. item.mid, 'over' end
  if #item.state == 0 then return redis.call('EXISTS', key) == 1 end
  local stored = redis.call('HMGET', key, 'n', 'ls', 'ts', 'nt')
  for i = 1, 4 do
    if (stored[i] or '') ~= item.state[i] then return true end
  end
  return tostring(redis.call('HLEN', root .. 'ev:' .. item.mid)) ~= item.state[5] or over ~= item.state[6]
end
for i, item in ipairs(items) do
  local moved = has_changed(item)
  done[i] = moved and 0 or 1
  if not moved then
    local former = redis.call('GET', root .. 'tlo:' .. item.mid)
    local before = heads_of(former, item.mid)
    if former then take_out(former, item.mid) end
    if item.owner then put_in(item) end
    if former and former ~= item.owner then
      note_periods(former, before, {})
      before = {}
    end
    if item.owner then note_periods(item.owner, before, item.events) end
  end
end
return done
