#!lua
-- Brings the index's times of reading up to date. `documents`: per memory its key and its vector's key.
-- KEYS: usage, unfolded, documents...
-- ARGV: mids...
-- -> how many index entries were written
local written = 0
for i = 0, #ARGV - mids_at do
  local mid, memory, vector_document = ARGV[mids_at + i], KEYS[documents_at + 2 * i], KEYS[documents_at + 2 * i + 1]
  local last = string.match(redis.call('HGET', usage, mid) or '', ' (%d+)$')
  if redis.call('EXISTS', memory) == 0 then
    redis.call('HDEL', usage, mid)
  elseif last then
    local last_accessed = string.format('%.3f', tonumber(last) / 1000)
    redis.call('HSET', memory, 'la', last_accessed)
    if redis.call('EXISTS', vector_document) == 1 then redis.call('HSET', vector_document, 'la', last_accessed) end
    written = written + 1
  end
  redis.call('SREM', unfolded, mid)
end
return written
