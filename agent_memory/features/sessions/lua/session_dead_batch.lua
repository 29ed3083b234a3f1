#!lua
-- Sets aside a batch that extraction gave up on, from `cursor` to `cursor_end`, with up to `context` messages before it.
-- The batch becomes a separate dead journal; the session's extraction continues after it.
-- KEYS: journal, journal_list, batch_journal, batch_list, dead_batches, due, tries, reasons, dead, wake
-- ARGV: sid, epoch, cursor, cursor_end, context: number, reason?, never_ended
-- -> 1 if done, 0 if the session changed
local clock = require("storage/clock")
local outbox = require("storage/outbox")
local chunks = require("storage/chunks")
local fields = redis.call('HMGET', journal, 'ep', 'je', 'jb', 'tn', 'sid', 'ns', 'us', 'st')
if fields[1] ~= epoch or fields[2] ~= cursor then return 0 end
local list_start = tonumber(fields[3])
local first = math.max(list_start, tonumber(cursor) - context)
local member = sid .. '.' .. cursor
redis.call('DEL', batch_journal, batch_list)
redis.call('HSET', batch_journal, 'ep', epoch, 'sq', cursor_end, 'jp', cursor_end, 'je', cursor, 'jb', string.format('%.0f', first))
redis.call('HSET', batch_journal, 'tn', fields[4], 'sid', fields[5])
for i, name in ipairs({'ns', 'us', 'st'}) do
  if fields[5 + i] then redis.call('HSET', batch_journal, name, fields[5 + i]) end
end
local entries = redis.call('LRANGE', journal_list, first - list_start, tonumber(cursor_end) - list_start - 1)
chunks.call('RPUSH', batch_list, entries)
redis.call('SADD', dead_batches, cursor)
redis.call('ZADD', dead, clock.ms, member)
redis.call('HSET', tries, member, '0 0 d' .. string.match(redis.call('HGET', tries, sid) or '0', '^%d+'))
redis.call('HSET', reasons, member, reason or redis.call('HGET', reasons, sid) or never_ended)
redis.call('HSET', journal, 'je', cursor_end)
redis.call('HDEL', journal, 'x0')
redis.call('ZADD', due, clock.ms, sid)
outbox.wake_dispatcher(wake)
return 1
