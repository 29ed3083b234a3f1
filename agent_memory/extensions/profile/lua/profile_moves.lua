-- Records the moves of memories in a profile (`:h`, newest first): each change between static, dynamic and "-" (not in
-- the profile).
local clock = require("storage/clock")
local MOVES, LASTING = 1000, 1e12
local function now() return clock.us / 1000000 end
-- During a rebuild (`:b` exists) no move is noted; `profile_rebuilt.lua` notes the differences at its end.
local function note(base, before, after, id)
  if before == after or not id or redis.call('EXISTS', base .. ':b') == 1 then return end
  redis.call('LPUSH', base .. ':h', string.format('%.0f', clock.ms) .. ' ' .. before .. ' ' .. after .. ' ' .. id)
  redis.call('LTRIM', base .. ':h', 0, MOVES - 1)
end
-- Return a memory's state: "static", "dynamic" or "-". A lapsed entry is dynamic; its move is noted once (x<mid>).
local function state_of(base, mid, id)
  local static_until = redis.call('ZSCORE', base .. ':s', mid)
  if not static_until then return redis.call('ZSCORE', base .. ':d', mid) and 'dynamic' or '-' end
  if tonumber(static_until) > now() then return 'static' end
  if redis.call('HSETNX', base, 'x' .. mid, 1) == 1 then note(base, 'static', 'dynamic', id) end
  return 'dynamic'
end
-- Return the state of an entry that is static until `static_until` (s; nil: dynamic). If that time is already past, the
-- entry is dynamic and was never static, so no lapse is noted.
local function settled(base, mid, static_until)
  if static_until and static_until <= now() then
    redis.call('HSET', base, 'x' .. mid, 1)
    return 'dynamic'
  end
  redis.call('HDEL', base, 'x' .. mid)
  return static_until and 'static' or 'dynamic'
end
-- Store in `pfl` when the owner's next static entry lapses.
local function await_next(root, owner)
  local first = redis.call('ZRANGEBYSCORE', root .. 'pf:' .. owner .. ':s', '(' .. now(), '(' .. LASTING, 'WITHSCORES', 'LIMIT', 0, 1)
  if first[2] then redis.call('ZADD', root .. 'pfl', first[2], owner) else redis.call('ZREM', root .. 'pfl', owner) end
end
return {note = note, state_of = state_of, settled = settled, await_next = await_next, now = now}
