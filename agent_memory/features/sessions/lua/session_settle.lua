#!lua flags=allow-oom
-- Deletes a session's record of pending work if it has none; ends a batch (its cursor) first.
-- `user_waiting`: the user's waiting sessions (or `meta`).
-- KEYS: meta, journal, journal_list, journal_own, set_aside, user_waiting, due, tries, reasons, dead
-- ARGV: sid, batch?
-- -> 1 nothing waits
local outbox = require("storage/outbox")
if batch then
  redis.call('DEL', journal .. '.' .. batch, journal .. '.' .. batch .. ':l')
  redis.call('SREM', set_aside, batch)
  outbox.clear_mark(sid .. '.' .. batch, due, tries, reasons, dead)
end
local cursors = redis.call('HMGET', journal, 'sq', 'jp', 'je')
if cursors[1] and math.min(tonumber(cursors[2]), tonumber(cursors[3])) < tonumber(cursors[1]) then return 0 end
if redis.call('EXISTS', journal_own) == 1 then return 0 end
if redis.call('EXISTS', meta) == 0 then redis.call('DEL', journal, journal_list) end
if redis.call('EXISTS', set_aside) == 1 then return 0 end
if user_waiting ~= meta then redis.call('ZREM', user_waiting, sid) end
return 1
