-- Deletes a session and its pending work. Work that still runs cannot write, because the journal that it read is gone.
-- NEEDS: sid, meta, messages, ids, doc, journal, journal_list, journal_own, dead_batches, user_waiting, outboxes
local outbox = require("storage/outbox")
local function end_work()
  local members = {sid}
  for _, cursor in ipairs(redis.call('SMEMBERS', dead_batches)) do
    members[#members + 1] = sid .. '.' .. cursor
    redis.call('DEL', journal .. '.' .. cursor, journal .. '.' .. cursor .. ':l')
  end
  redis.call('DEL', journal, journal_list, journal_own, dead_batches)
  if user_waiting ~= meta then redis.call('ZREM', user_waiting, sid) end
  for _, member in ipairs(members) do
    for k = outboxes_at, #KEYS, 4 do outbox.clear_mark(member, unpack(KEYS, k, k + 3)) end
  end
end
local function end_session()
  end_work()
  redis.call('DEL', meta, messages, ids, doc)
end
return {end_work = end_work, end_session = end_session}
