#!lua flags=allow-oom
-- Deletes a session and its pending work; with `only_work`, only the work. With `epoch`, does nothing if the session
-- has another one. `user_waiting` is the set of the user's waiting sessions, or `meta` without a user. `outboxes` are
-- due, tries, reasons and dead of each kind of session work.
-- KEYS: meta, messages, ids, doc, journal, journal_list, journal_own, dead_batches, user_waiting, outboxes...
-- ARGV: sid, epoch?, only_work: flag
-- -> 1 if it existed
local clock = require("storage/clock")
local ending = require("sessions/ending")
local deleted = redis.call('EXISTS', meta)
if epoch then
  local current = redis.call('HGET', meta, 'ep') or redis.call('HGET', journal, 'ep')
  if current and current ~= epoch then return 0 end
  deleted = 1
end
if only_work then
  ending.end_work()
  if deleted == 1 then redis.call('HSET', meta, 'ep', clock.us_text()) end
else
  ending.end_session()
end
return deleted
