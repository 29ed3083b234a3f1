#!lua
-- Replaces a file's record, if it is still the expected one. '' means no record.
-- KEYS: files, users, holders
-- ARGV: file, expected, value, user, guard: json
-- -> 1, or 0 if the record changed
local erasures = require("storage/erasures")
erasures.refuse(guard)
if (redis.call('HGET', files, file) or '') ~= expected then return 0 end
if value == '' then
  redis.call('HDEL', files, file)
  redis.call('SREM', holders, user)
  if redis.call('EXISTS', files) == 0 then redis.call('SREM', users, user) end
else
  redis.call('HSET', files, file, value)
  redis.call('SADD', users, user)
  redis.call('SADD', holders, user)
end
return 1
