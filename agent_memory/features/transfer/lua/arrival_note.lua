#!lua
-- Notes what arrived with an import, and that this owner has data of it.
-- KEYS: arrived, arrivals
-- ARGV: owner, seconds: number, guard: json, members...
local erasures = require("storage/erasures")
erasures.refuse(guard)
redis.call('SADD', arrived, unpack(ARGV, members_at))
redis.call('SADD', arrivals, owner)
redis.call('EXPIRE', arrived, seconds)
redis.call('EXPIRE', arrivals, seconds)
return 1
