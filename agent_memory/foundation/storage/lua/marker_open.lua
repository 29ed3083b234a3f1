#!lua
-- Marks a new store, unless Redis already has a marker or a noted loss. If `lost_id` names the store that was here,
-- notes its loss instead.
-- KEYS: config
-- ARGV: new_id, lost_id?
local clock = require("storage/clock")
if redis.call('HGET', config, 'store') or redis.call('HEXISTS', config, 'lost') == 1 then return end
if lost_id then
  redis.call('HSET', config, 'lost', lost_id)
else
  redis.call('HSET', config, 'store', new_id, 'made', clock.ms)
end
