#!lua
-- Replaces the `count` oldest messages with a summary, unless these or the former summary changed in the meantime.
-- KEYS: meta, messages, ids
-- ARGV: fence, count: number, context, context_tokens, remembered_ids: number
-- -> 1 if done, 0 if the session changed
local clock = require("storage/clock")
if redis.call('HGET', meta, 'hd') ~= fence then return 0 end
if redis.call('LLEN', messages) < count then return 0 end
local dropped_tokens = 0
for _, entry in ipairs(redis.call('LRANGE', messages, 0, count - 1)) do
  dropped_tokens = dropped_tokens + tonumber(string.match(entry, '^%d+ (%d+) '))
end
redis.call('LTRIM', messages, count, -1)
redis.call('HINCRBY', meta, 'mt', -dropped_tokens)
redis.call('HINCRBY', meta, 'v', 1)
redis.call('HSET', meta, 'ctx', context, 'ct', context_tokens, 'hd', clock.us_text(), 'ua', clock.us_text())
local oldest = redis.call('LINDEX', messages, 0)
if oldest then
  local first_remembered = string.format('%.0f', tonumber(string.match(oldest, '^(%d+) ')) - remembered_ids)
  redis.call('ZREMRANGEBYSCORE', ids, '-inf', '(' .. first_remembered)
end
return 1
