#!lua
-- Restores a change unless its id exists. `at`: its time (µs); `mids`: its memories, separated by spaces;
-- `fields`: fields and values, the tenant first.
-- KEYS: change
-- ARGV: root, id, at, mids, guard: json, fields...
-- -> 1 brought back, 0 it is here, -1 something else stands here
local erasures = require("storage/erasures")
erasures.refuse(guard)
local stored = redis.call('HMGET', change, 't', 'ms')
if stored[1] then return stored[1] == ARGV[fields_at + 1] and stored[2] == mids and 0 or -1 end
redis.call('HSET', change, 'ms', mids, unpack(ARGV, fields_at))
for mid in string.gmatch(mids, '%S+') do redis.call('ZADD', root .. 'mh:' .. mid, at, 'c' .. id) end
return 1
