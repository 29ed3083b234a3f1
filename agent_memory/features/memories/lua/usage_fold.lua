#!lua
-- Copies the times of the last readings to the index.
-- KEYS: usage, unfolded
-- ARGV: root, mids...
-- -> how many index entries were written
local documents = require("memories/documents")
local written = 0
for i = mids_at, #ARGV do
  local mid = ARGV[i]
  local memory = documents.memory_key(mid)
  local last = string.match(redis.call('HGET', usage, mid) or '', ' (%d+)$')
  if redis.call('EXISTS', memory) == 0 then
    redis.call('HDEL', usage, mid)
  elseif last then
    local last_accessed = string.format('%.3f', tonumber(last) / 1000)
    redis.call('HSET', memory, 'la', last_accessed)
    for _, vector in ipairs(documents.vector_keys(mid)) do
      if redis.call('EXISTS', vector) == 1 then redis.call('HSET', vector, 'la', last_accessed) end
    end
    written = written + 1
  end
  redis.call('SREM', unfolded, mid)
end
return written
