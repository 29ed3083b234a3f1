#!lua
-- Notes in an empty Redis which store is gone, for processes that never knew it.
-- KEYS: config
-- ARGV: store_id
if redis.call('HEXISTS', config, 'store') == 0 then redis.call('HSETNX', config, 'lost', store_id) end
