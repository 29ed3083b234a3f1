#!lua flags=allow-oom
-- Removes messages by `numbers`, and with `drop_summary` the summary. Their identities stay known, so that a retry does
-- not write them again. A journal counts by position, so an empty, unpromoted entry replaces each message there and in
-- the batches that extraction has set aside. New epochs fence background work that has read the messages.
-- KEYS: meta, messages, journal, journal_list, dead_batches
-- ARGV: epoch, fence, drop_summary: flag, numbers...
-- -> 1 if done, 0 if the session changed
local clock = require("storage/clock")
local session = redis.call('HMGET', meta, 'ep', 'hd')
if session[1] ~= epoch or session[2] ~= fence then return 0 end
local struck, dropped_tokens = {}, 0
for i = numbers_at, #ARGV do struck[ARGV[i]] = true end
for _, entry in ipairs(redis.call('LRANGE', messages, 0, -1)) do
  local number, tokens = string.match(entry, '^(%d+) (%d+) ')
  if struck[number] then
    dropped_tokens = dropped_tokens + tonumber(tokens)
    redis.call('LREM', messages, 1, entry)
  end
end
local function strike_journal(key, list)
  for i, entry in ipairs(redis.call('LRANGE', list, 0, -1)) do
    local number, message = string.match(entry, '^%-?(%d+) %d+ (.*)$')
    if struck[number] then
      message = cjson.decode(message)
      local empty = cjson.encode({i = message.i, r = message.r, c = '', t = message.t})
      redis.call('LSET', list, i - 1, '-' .. number .. ' 0 ' .. empty)
    end
  end
  if redis.call('EXISTS', key) == 1 then redis.call('HSET', key, 'ep', clock.us_text()) end
end
strike_journal(journal, journal_list)
for _, cursor in ipairs(redis.call('SMEMBERS', dead_batches)) do
  local batch = journal .. '.' .. cursor
  strike_journal(batch, batch .. ':l')
end
redis.call('HINCRBY', meta, 'mt', -dropped_tokens)
redis.call('HINCRBY', meta, 'v', 1)
redis.call('HSET', meta, 'hd', clock.us_text(), 'ua', clock.us_text(), 'ep', clock.us_text())
if drop_summary then redis.call('HDEL', meta, 'ctx', 'ct') end
return 1
