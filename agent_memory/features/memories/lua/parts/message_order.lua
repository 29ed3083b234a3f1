-- Keeps the messages of a session in order (a sorted set), because the words of a message also index its neighbors.
-- A message that is an alias represents its memory in the order.
-- NEEDS: root, due, reach
local clock = require("storage/clock")
local outbox = require("storage/outbox")
local aliases = require("memories/aliases")
local function mark_neighbours(order, mid)
  local rank = redis.call('ZRANK', order, mid)
  for _, other in ipairs(rank and redis.call('ZRANGE', order, math.max(rank - reach, 0), rank + reach) or {}) do
    if other ~= mid then outbox.mark_due(due, clock.ms, aliases.target_of(other) or other) end
  end
end
-- Puts a message last, or at a score. The messages before a last one are indexed again after `delay_ms`, when more
-- messages have come.
local function insert(order, mid, score, delay_ms)
  if redis.call('ZSCORE', order, mid) then return end
  local last = redis.call('ZREVRANGE', order, 0, reach - 1, 'WITHSCORES')
  redis.call('ZADD', order, score or math.max(tonumber(last[2]) or 0, 0) + 1, mid)
  if score then
    mark_neighbours(order, mid)
    outbox.mark_due(due, clock.ms, mid)
  else
    for i = 1, #last, 2 do outbox.mark_due(due, clock.ms + delay_ms, last[i]) end
  end
end
local function remove(order, mid)
  mark_neighbours(order, mid)
  redis.call('ZREM', order, mid)
end
return {insert = insert, remove = remove}
