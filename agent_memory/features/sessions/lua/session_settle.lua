#!lua flags=allow-oom
-- Deletes the record of a session's pending work if no work is left. Before that, ends a set-aside `batch` (its
-- cursor). `user_waiting` is the set of the user's waiting sessions, or `meta` without a user.
-- KEYS: meta, journal, journal_list, journal_own, dead_batches, user_waiting, due, tries, reasons, dead
-- ARGV: sid, batch?
-- -> 1 if no work is left
local outbox = require("storage/outbox")
if batch then
  redis.call('DEL', journal .. '.' .. batch, journal .. '.' .. batch .. ':l')
  redis.call('SREM', dead_batches, batch)
  outbox.clear_mark(sid .. '.' .. batch, due, tries, reasons, dead)
end
local cursors = redis.call('HMGET', journal, 'sq', 'jp', 'je')
if cursors[1] and math.min(tonumber(cursors[2]), tonumber(cursors[3])) < tonumber(cursors[1]) then return 0 end
if redis.call('EXISTS', journal_own) == 1 then return 0 end
if redis.call('EXISTS', meta) == 0 then redis.call('DEL', journal, journal_list) end
if redis.call('EXISTS', dead_batches) == 1 then return 0 end
if user_waiting ~= meta then redis.call('ZREM', user_waiting, sid) end
return 1
