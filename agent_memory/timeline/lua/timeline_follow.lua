#!lua
-- Brings timelines up to date with memories as they were read. Nothing is written of a memory that has changed since.
--   items  [{mid, state: [n, ls, ts, evidence…, "over" or ""] (empty: it is gone), owner (none: it is in no timeline), user_key,
--          namespace (as a tag or ""), events: [{m: its name, b: first day, e: last day (none: open), f: [topic or entity…], j: JSON}…]}…]
-- Each owner has a hash of memories (m<mid>: the names, days and facets of their events) and events (e<name>), and ordered sets: of all
-- events, and of each topic and entity, by first day (:b), and of those that last longer than a day, by last day (:e).
-- KEYS: any
-- ARGV: root, items: json
-- -> per item 1, or 0 where its memory has changed
local done = {}
local function sets(base, head, visit)
  visit(base .. ':b', base .. ':e')
  for _, name in ipairs(head.f) do visit(base .. ':b:' .. name, base .. ':e:' .. name) end
end
local function take_out(owner, mid)
  local base = root .. 'tl:' .. owner
  local json = redis.call('HGET', base, 'm' .. mid)
  for _, head in ipairs(json and cjson.decode(json) or {}) do
    sets(base, head, function(starts, ends)
      redis.call('ZREM', starts, head.m)
      redis.call('ZREM', ends, head.m)
    end)
    redis.call('HDEL', base, 'e' .. head.m)
  end
  redis.call('HDEL', base, 'm' .. mid)
  redis.call('DEL', root .. 'tlo:' .. mid)
end
local function put_in(item)
  local base, heads = root .. 'tl:' .. item.owner, {}
  for i, event in ipairs(item.events) do
    sets(base, event, function(starts, ends)
      redis.call('ZADD', starts, event.b, event.m)
      if event.e ~= event.b then redis.call('ZADD', ends, event.e or '+inf', event.m) end
    end)
    redis.call('HSET', base, 'e' .. event.m, event.j)
    heads[i] = {m = event.m, f = event.f}
  end
  redis.call('HSET', base, 'm' .. item.mid, cjson.encode(heads))
  redis.call('SET', root .. 'tlo:' .. item.mid, item.owner)
  redis.call('HSET', root .. 'tlu:' .. item.user_key, item.owner, item.namespace)
end
local function has_changed(item)
  local key, over = root .. 'm:' .. item.mid, ''
  if redis.call('EXISTS', key) == 0 then key, over = root .. 'h:' .. item.mid, 'over' end
  if #item.state == 0 then return redis.call('EXISTS', key) == 1 end
  local known = redis.call('HMGET', key, 'n', 'ls', 'ts', 'nt')
  for i = 1, 4 do
    if (known[i] or '') ~= item.state[i] then return true end
  end
  return tostring(redis.call('HLEN', root .. 'ev:' .. item.mid)) ~= item.state[5] or over ~= item.state[6]
end
for i, item in ipairs(items) do
  local moved = has_changed(item)
  done[i] = moved and 0 or 1
  if not moved then
    local former = redis.call('GET', root .. 'tlo:' .. item.mid)
    if former then take_out(former, item.mid) end
    if item.owner then put_in(item) end
  end
end
return done
