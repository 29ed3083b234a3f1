#!lua
-- Notes in a Redis without a store which one is gone: who starts later and never knew it learns that it was there.
-- KEYS: config
-- ARGV: store_id
if redis.call('HEXISTS', config, 'store') == 0 then redis.call('HSETNX', config, 'lost', store_id) end
