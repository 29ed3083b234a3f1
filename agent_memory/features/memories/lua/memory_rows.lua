#!lua flags=no-writes
-- Reads some fields of memories and their usage in one reply, because each reply costs the client time.
-- KEYS: usage, memories...
-- ARGV: fields: number, values...
-- `values` are the names of the fields (`fields` is their number), then each memory's name in the usage hash.
-- -> for each memory the values of its fields; at the end the usage of all memories
local names = {unpack(ARGV, values_at, values_at + fields - 1)}
local answer = {}
for i = memories_at, #KEYS do answer[#answer + 1] = redis.call('HMGET', KEYS[i], unpack(names)) end
answer[#answer + 1] = redis.call('HMGET', usage, unpack(ARGV, values_at + fields))
return answer
