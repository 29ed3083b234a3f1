#!lua
-- Notes the moves of static entries that have lapsed. Readers show these entries as dynamic.
-- KEYS: config
-- ARGV: root, most: number
-- -> number of profiles with lapsed entries, at most `most`
local profile_moves = require("profile/profile_moves")
local owners = redis.call('ZRANGEBYSCORE', root .. 'pfl', '-inf', profile_moves.now(), 'LIMIT', 0, most)
for _, owner in ipairs(owners) do
  local base = root .. 'pf:' .. owner
  for _, mid in ipairs(redis.call('ZRANGEBYSCORE', base .. ':s', '-inf', profile_moves.now())) do
    local head = redis.call('HGET', base, 'm' .. mid)
    if head then profile_moves.state_of(base, mid, cjson.decode(head).i) end
  end
  if redis.call('EXISTS', base .. ':r') == 1 then redis.call('HINCRBY', base .. ':r', 'v', 1) end
  profile_moves.await_next(root, owner)
end
return #owners
