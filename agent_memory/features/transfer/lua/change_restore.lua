#!lua
-- Restores a change unless its id exists. `at` is its time (µs). `mids` are its memories, separated by spaces.
-- `fields` are pairs of field and value, the tenant first.
-- KEYS: change
-- ARGV: root, id, at, mids, guard: json, fields...
-- -> 1 if restored, 0 if the change exists, -1 if another change has its id, -2 if a change of another tenant has it
local erasures = require("storage/erasures")
erasures.refuse(guard)
local stored = redis.call('HMGET', change, 't', 'ms')
if stored[1] and stored[1] ~= ARGV[fields_at + 1] then return -2 end
if stored[1] then return stored[2] == mids and 0 or -1 end
redis.call('HSET', change, 'ms', mids, unpack(ARGV, fields_at))
for mid in string.gmatch(mids, '%S+') do redis.call('ZADD', root .. 'mh:' .. mid, at, 'c' .. id) end
return 1
