#!lua flags=allow-oom
-- Deletes a profile. `rebuilds` is set before a rebuild: it keeps the moves and the version, and stores the state of
-- each memory in `:b` for `profile_rebuilt.lua`.
-- KEYS: config
-- ARGV: root, owner, user_key, rebuilds: flag
-- -> number of memories in the deleted profile
local empty_profile_expiry = require("profile/empty_profile_expiry")
local profile_moves = require("profile/profile_moves")
local BEFORE_SECONDS = 86400
local base = root .. 'pf:' .. owner
local names, states, entries = {}, {}, 0
for _, name in ipairs(redis.call('HKEYS', base)) do
  if string.sub(name, 1, 1) == 'm' then
    local mid = string.sub(name, 2)
    entries = entries + 1
    names[entries] = root .. 'pfo:' .. mid
    if rebuilds then
      local id = cjson.decode(redis.call('HGET', base, name)).i
      states[entries] = {mid, profile_moves.state_of(base, mid, id) .. ' ' .. id}
    end
  end
end
for _, state in ipairs(states) do redis.call('HSETNX', base .. ':b', state[1], state[2]) end
for i = 1, #names, 1000 do redis.call('DEL', unpack(names, i, math.min(i + 999, #names))) end
redis.call('DEL', base, base .. ':g', base .. ':s', base .. ':d', base .. ':l')
redis.call('ZREM', root .. 'pfl', owner)
if rebuilds then
  redis.call('EXPIRE', base .. ':b', BEFORE_SECONDS)
  local version = redis.call('HGET', base .. ':r', 'v')
  redis.call('DEL', base .. ':r')
  if version then redis.call('HSET', base .. ':r', 'v', version + 1, 'u', user_key) end
  empty_profile_expiry.start(root, owner)
else
  redis.call('DEL', base .. ':r', base .. ':h', base .. ':b')
  redis.call('HDEL', root .. 'pfu:' .. user_key, owner)
end
return entries
