#!lua flags=no-writes
-- Some fields of memories, and how often these were read: one reply, since a client pays for each.
-- KEYS: usage, memories...
-- ARGV: fields: number, values...
-- `values` are the names of so many fields, then each memory's name in the usage.
-- -> per memory the values of its fields; at the end the usage of all of them
local names = {unpack(ARGV, values_at, values_at + fields - 1)}
local answer = {}
for i = memories_at, #KEYS do answer[#answer + 1] = redis.call('HMGET', KEYS[i], unpack(names)) end
answer[#answer + 1] = redis.call('HMGET', usage, unpack(ARGV, values_at + fields))
return answer
