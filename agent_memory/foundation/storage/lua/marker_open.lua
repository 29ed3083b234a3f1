#!lua
-- Gives a store that has no marker one: of several processes that start at the same moment one makes it. If nothing is left of a store that
-- was here (`lost_id`), its loss is noted instead.
-- KEYS: config
-- ARGV: new_id, lost_id?
local clock = require("storage/clock")
if redis.call('HGET', config, 'store') or redis.call('HEXISTS', config, 'lost') == 1 then return end
if lost_id then
  redis.call('HSET', config, 'lost', lost_id)
else
  redis.call('HSET', config, 'store', new_id, 'made', clock.ms)
end
