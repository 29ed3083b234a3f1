#!lua flags=allow-oom
-- Forgets a session, if it has this epoch (none: any). `user_waiting` are the user's waiting sessions (or `meta` again), `outboxes` are, per
-- kind of work on sessions, its due, tries, reasons and dead.
-- KEYS: meta, messages, ids, doc, journal, journal_list, journal_own, set_aside, user_waiting, outboxes...
-- ARGV: sid, epoch?
-- -> 1 when it was there
local outbox = require("storage/outbox")
local deleted = redis.call('EXISTS', meta)
if epoch then
  local current = redis.call('HGET', meta, 'ep') or redis.call('HGET', journal, 'ep')
  if current and current ~= epoch then return 0 end
  deleted = 1
end
local members = {sid}
for _, cursor in ipairs(redis.call('SMEMBERS', set_aside)) do
  members[#members + 1] = sid .. '.' .. cursor
  redis.call('DEL', journal .. '.' .. cursor, journal .. '.' .. cursor .. ':l')
end
redis.call('DEL', meta, messages, ids, doc, journal, journal_list, journal_own, set_aside)
if user_waiting ~= meta then redis.call('ZREM', user_waiting, sid) end
for _, member in ipairs(members) do
  for k = outboxes_at, #KEYS, 4 do outbox.clear_mark(member, unpack(KEYS, k, k + 3)) end
end
return deleted
