#!lua flags=allow-oom
-- Restarts the TTL of items.
-- KEYS: expiries
-- ARGV: root, members...
local item_expiry = require("items/item_expiry")
for i = members_at, #ARGV do
  local ttl = redis.call('HGET', root .. 'it:' .. string.sub(ARGV[i], -32), 'tl')
  if ttl then item_expiry.expire(ARGV[i], tonumber(ttl)) end
end
return 1
