#!lua
-- Asks whether Redis accepts writes: it checks that before a script that could write. Writes only the id of the store
-- that is there already (`store_id`), which tests the log file.
-- KEYS: config
-- ARGV: store_id?
if store_id and redis.call('HGET', config, 'store') == store_id then redis.call('HSET', config, 'store', store_id) end
return 1
