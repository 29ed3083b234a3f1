#!lua
-- Updates timelines with memories as a worker read them. Skips memories that changed after they were read.
--   stamp   a new id; periods that this call changes are marked with it
--   items   list of {mid, state, owner, user_key, namespace, identity, events}:
--     state      as in `read_state.lua`, and "over" or "": the fence
--     owner      nil if the memory belongs to no timeline
--     namespace  as a tag, or ""
--     identity   owner and time zone as JSON
--     events     list of {m: name, b: first day, e: last day (nil: open), f: facets (topics, entities, precision),
--                h: digest of what a summary depends on, p: list of [period, when (s) it ends], j: JSON}
-- Keys of a timeline:
--   base hash       memories (m<mid>: names, facets and periods of their events), events (e<name>), owner (o), user (u)
--   :b, :b:<facet>  all events, and the events of one facet, by first day
--   :e, :e:<facet>  events of several days, by last day
--   :s              hash of event counts (c<period>), summaries (<period>), and marks of waiting periods
--                   (g<period>: stamp and end)
--   :p              waiting periods by when they are due
-- If an event of a period changes, the script deletes the period's summary and makes the period wait for a new one.
-- KEYS: config
-- ARGV: root, stamp, items: json
-- -> for each item 1, or 0 if its memory changed and was skipped
local waiting_periods = require("timeline/waiting_periods")
local read_state = require("memories/read_state")
local done = {}
local function sets(base, head, visit)
  visit(base .. ':b', base .. ':e')
  for _, name in ipairs(head.f) do visit(base .. ':b:' .. name, base .. ':e:' .. name) end
end
local function heads_of(owner, mid)
  local json = owner and redis.call('HGET', root .. 'tl:' .. owner, 'm' .. mid)
  return json and cjson.decode(json) or {}
end
-- Delete a timeline without events. Only the fields `o` and `u` are then left.
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
  return read_state.has_changed(key, item.mid, item.state) or #item.state > 0 and over ~= item.state[7]
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
