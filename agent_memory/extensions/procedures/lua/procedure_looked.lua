#!lua
-- Marks a procedure's failures as checked, unless its outcomes changed since they were read.
-- KEYS: record, failing
-- ARGV: pid, outcomes
if (redis.call('HGET', record, 'o') or '') == outcomes then redis.call('SREM', failing, pid) end
return 1
