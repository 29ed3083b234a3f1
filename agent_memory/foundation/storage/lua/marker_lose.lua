#!lua
-- Notes in an empty Redis which store was lost, and how many buckets it had, for processes that never knew that store.
-- KEYS: config
-- ARGV: store_id, buckets?
if redis.call('HEXISTS', config, 'store') == 1 then return end
redis.call('HSETNX', config, 'lost', store_id)
if buckets then redis.call('HSETNX', config, 'buckets', buckets) end
