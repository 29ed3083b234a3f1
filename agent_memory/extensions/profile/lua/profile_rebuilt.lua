#!lua flags=allow-oom
-- Ends a rebuild: notes a move for each memory whose state differs from the state before the rebuild (`:b`).
-- KEYS: config
-- ARGV: root, owner
local profile_moves = require("profile/profile_moves")
local base = root .. 'pf:' .. owner
local former, flat = {}, redis.call('HGETALL', base .. ':b')
redis.call('DEL', base .. ':b')
for i = 1, #flat, 2 do former[flat[i]] = flat[i + 1] end
for _, name in ipairs(redis.call('HKEYS', base)) do
  if string.sub(name, 1, 1) == 'm' then
    local mid = string.sub(name, 2)
    local id = cjson.decode(redis.call('HGET', base, name)).i
    profile_moves.note(base, string.match(former[mid] or '-', '^%S+'), profile_moves.state_of(base, mid, id), id)
    former[mid] = nil
  end
end
for _, was in pairs(former) do
  local state, id = string.match(was, '^(%S+) (.*)$')
  profile_moves.note(base, state, '-', id)
end
return 1
