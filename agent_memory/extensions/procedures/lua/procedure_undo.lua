#!lua
-- Deletes a procedure or a tool's statistics if an import stored it and it has not changed since; with `dry`, only counts it.
-- KEYS: record, changes, feedback, failing
-- ARGV: pid, imported, dry: flag
-- -> 1 or 0
if redis.call('HGET', record, 'im') ~= imported then return 0 end
if not dry then
  redis.call('DEL', record, changes, feedback)
  redis.call('SREM', failing, pid)
end
return 1
