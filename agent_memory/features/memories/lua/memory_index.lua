#!lua
-- Indexes memories that did not change since they were read. `documents` has the key of each memory, current or in the
-- history. `memories` has for each: mid, version, lease, terms, record and metadata tags ("" without a new mark), tags
-- of the days that the text names, vector field, vector, and a count followed by each passage's terms and vector.
-- KEYS: due, tries, reasons, dead, documents...
-- ARGV: root, memories...
-- -> per memory 1 written, 0 it changed or is gone
local documents = require("memories/documents")
local follow_marks = require("memories/follow_marks")
local vector_tags = require("memories/vector_tags")
local written, a = {}, memories_at
for k = documents_at, #KEYS do
  local memory = KEYS[k]
  local mid, version, lease, terms, marked, tags, days, field, vector, count = unpack(ARGV, a, a + 9)
  local stored = redis.call('HMGET', memory, 'n', 'k')
  local is_same = stored[1] == version and not documents.is_gone(field)
  if is_same then
    -- Do not write unchanged terms: each write leaves old postings until the garbage collector runs.
    if stored[2] ~= terms then redis.call('HSET', memory, 'k', terms) end
    if marked ~= '' then
      redis.call('HSET', memory, 'j', marked, 'md', tags)
      follow_marks.mark(mid)
    end
    if days ~= '' then redis.call('HSET', memory, 'da', days) end
    if memory == documents.memory_key(mid) then
      vector_tags.write(mid, field, vector, {unpack(ARGV, a + 10, a + 9 + count)})
    else
      redis.call('HSET', memory, field, vector)
      documents.note_vector(mid)
    end
  end
  if is_same or not stored[1] then
    local score = redis.call('ZSCORE', due, mid)
    local leased_until = string.match(redis.call('HGET', tries, mid) or '', '^%d+ (%d+)') or lease
    if score and tonumber(score) == tonumber(lease) then redis.call('ZREM', due, mid) end
    -- If the memory was marked and claimed again in the meantime, the work belongs to that claim.
    if leased_until == lease or not score then
      redis.call('HDEL', tries, mid)
      redis.call('HDEL', reasons, mid)
      redis.call('ZREM', dead, mid)
    end
  end
  written[#written + 1] = is_same and 1 or 0
  a = a + 10 + count
end
follow_marks.write()
return written
