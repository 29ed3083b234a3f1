#!lua flags=allow-oom
-- Deletes a profile, with all that is known of it. Its moves stay with `keeps_moves`, and its version goes on: what is made anew is newer.
-- KEYS: any
-- ARGV: root, owner, user_key, keeps_moves: flag
-- -> how many memories it was made of
local empty_profile_expiry = require("profile/empty_profile_expiry")
local base = root .. 'pf:' .. owner
local names, entries = {}, 0
for _, name in ipairs(redis.call('HKEYS', base)) do
  if string.sub(name, 1, 1) == 'm' then
    entries = entries + 1
    names[entries] = root .. 'pfo:' .. string.sub(name, 2)
  end
end
for i = 1, #names, 1000 do redis.call('DEL', unpack(names, i, math.min(i + 999, #names))) end
redis.call('DEL', base, base .. ':g', base .. ':s', base .. ':d', base .. ':l')
if keeps_moves then
  local version = redis.call('HGET', base .. ':r', 'v')
  redis.call('DEL', base .. ':r')
  if version then redis.call('HSET', base .. ':r', 'v', version + 1, 'u', user_key) end
  empty_profile_expiry.start(root, owner)
else
  redis.call('DEL', base .. ':r', base .. ':h')
  redis.call('HDEL', root .. 'pfu:' .. user_key, owner)
end
return entries
