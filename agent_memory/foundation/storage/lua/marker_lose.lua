#!lua
-- Notes in an empty Redis which store was lost, for processes that never knew that store.
-- KEYS: config
-- ARGV: store_id
if redis.call('HEXISTS', config, 'store') == 0 then redis.call('HSETNX', config, 'lost', store_id) end
