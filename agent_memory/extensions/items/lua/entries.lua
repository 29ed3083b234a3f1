-- Removes entries of one owner. An entry is "<path>!<key>!<item>" in the sorted set `items`; `expiries` has its expiry
-- time (`items/item_expiry`), and `paths` the number of items per path.
-- NEEDS: root, items, expiries, paths, owners, owner
local clock = require("storage/clock")
local function remove(member)
  if redis.call('ZREM', items, member) == 0 then return 0 end
  redis.call('ZREM', expiries, member)
  redis.call('UNLINK', root .. 'it:' .. string.sub(member, -32))
  local path = string.match(member, '^[^!]*')
  if redis.call('HINCRBY', paths, path, -1) <= 0 then redis.call('HDEL', paths, path) end
  if redis.call('ZCARD', items) == 0 then redis.call('HDEL', owners, owner) end
  return 1
end
-- Remove expired entries. Every script that lists or writes entries calls this first.
local function remove_ended()
  local now = string.format('%.0f', clock.ms)
  local ended
  repeat
    ended = redis.call('ZRANGEBYSCORE', expiries, '-inf', now, 'LIMIT', 0, 1000)
    for _, member in ipairs(ended) do remove(member) end
  until #ended < 1000
end
return {remove = remove, remove_ended = remove_ended}
