#!lua
-- Tests whether Redis accepts writes: Redis checks that before it runs a script that could write. With `store_id`,
-- writes this id if Redis already has it, which tests the log file.
-- KEYS: config
-- ARGV: store_id?
if store_id and redis.call('HGET', config, 'store') == store_id then redis.call('HSET', config, 'store', store_id) end
return 1
