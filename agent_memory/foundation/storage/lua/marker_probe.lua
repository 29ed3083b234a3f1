#!lua
-- Asks whether Redis takes writes: it looks whether it may write before it runs a script that could, and says why not. This one writes only
-- when it is told which store must be there, and what is there already: that goes to the log file, and nothing changes.
-- KEYS: config
-- ARGV: store_id?
if store_id and redis.call('HGET', config, 'store') == store_id then redis.call('HSET', config, 'store', store_id) end
return 1
