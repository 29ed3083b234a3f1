#!lua
-- Marks a procedure's last outcomes as seen, unless there are others by now.
-- KEYS: record, failing
-- ARGV: pid, outcomes
if (redis.call('HGET', record, 'o') or '') == outcomes then redis.call('SREM', failing, pid) end
return 1
