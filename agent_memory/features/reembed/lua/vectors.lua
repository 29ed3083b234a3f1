#!lua
-- Adds vectors of another model to memories that did not change since they were read. Keeps their other vectors.
-- `memories` has for each: name, version ("" if it is gone), "1" if it is in the history, field, vector, and a count
-- followed by each passage's vector.
-- KEYS: todo
-- ARGV: root, memories...
-- -> how many are done
local documents = require("memories/documents")
local done, a = 0, memories_at
while a <= #ARGV do
  local mid, version, past, field, vector, count = unpack(ARGV, a, a + 5)
  local key = past == '1' and documents.history_key(mid) or documents.memory_key(mid)
  -- A memory that changed stays in `todo`. A worker that was asleep adds no vector that is deleted in the meantime.
  if (redis.call('HGET', key, 'n') or '') == version and not documents.is_gone(field) then
    local keys = past == '1' and {key} or documents.vector_keys(mid)
    -- Without the first vector, or with other passages, the indexing of the memory is due, and notes it again.
    if version ~= '' and #keys == count + 1 and redis.call('EXISTS', keys[1]) == 1 then
      redis.call('HSET', keys[1], field, vector)
      for i = 1, count do redis.call('HSET', keys[i + 1], field, ARGV[a + 5 + i]) end
    end
    done = done + redis.call('SREM', todo, mid)
  end
  a = a + 6 + count
end
return done
