#!lua
-- Adds what the search needs to memories that have not changed since they were read. `documents`: per memory its key and its vector's key
-- (the same key for what is history); `memories`: per memory its mid, version, lease, index terms, vector field and vector.
-- KEYS: due, tries, reasons, dead, documents...
-- ARGV: memories...
-- -> per memory 1 written, 0 it changed or is gone
local vector_tags = require("memories/vector_tags")
local written, a = {}, memories_at
for k = documents_at, #KEYS, 2 do
  local memory, vector_document = KEYS[k], KEYS[k + 1]
  local mid, version, lease, terms, field, vector = unpack(ARGV, a, a + 5)
  local known = redis.call('HMGET', memory, 'n', 'k')
  local is_same = known[1] == version
  if is_same then
    -- Only other words are written: each write of a text field leaves old postings in the statistics until they are collected.
    if known[2] ~= terms then redis.call('HSET', memory, 'k', terms) end
    if memory == vector_document then
      redis.call('HSET', memory, field, vector)
    else
      vector_tags.copy(memory, vector_document, field, vector)
    end
  end
  if is_same or not known[1] then
    local score = redis.call('ZSCORE', due, mid)
    local held = string.match(redis.call('HGET', tries, mid) or '', '^%d+ (%d+)') or lease
    if score and tonumber(score) == tonumber(lease) then redis.call('ZREM', due, mid) end
    -- What was marked and claimed again meanwhile (a neighbour came) is that claim's to end: without its record it could not begin.
    if held == lease or not score then
      redis.call('HDEL', tries, mid)
      redis.call('HDEL', reasons, mid)
      redis.call('ZREM', dead, mid)
    end
  end
  written[#written + 1] = is_same and 1 or 0
  a = a + 6
end
return written
