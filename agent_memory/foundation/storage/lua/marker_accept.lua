#!lua
-- Accepts the current content of Redis as the store. A store without a marker gets a new id.
-- KEYS: config
-- ARGV: new_id
local clock = require("storage/clock")
if redis.call('HSETNX', config, 'store', new_id) == 1 then redis.call('HSET', config, 'made', clock.ms) end
redis.call('HSET', config, 'accepted', clock.ms)
redis.call('HDEL', config, 'lost')
