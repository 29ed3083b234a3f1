#!lua flags=allow-oom
-- Items that were read stay for their time to live again.
-- KEYS: items, expiries, paths, owners
-- ARGV: root, owner, members...
local entries = require("items/entries")
for i = members_at, #ARGV do
  local ttl = redis.call('HGET', root .. 'it:' .. string.sub(ARGV[i], -32), 'tl')
  if ttl then entries.expire(ARGV[i], tonumber(ttl)) end
end
return 1
