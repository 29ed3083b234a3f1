#!lua flags=no-writes
-- Reads pending work in one step, because another worker may trim it. `cursor` is "jp" (promotion) or "je"
-- (extraction); `context` is how many messages to read before it.
-- KEYS: journal, journal_list, journal_own
-- ARGV: cursor, limit: number, context: number
-- -> {the journal's fields, entries, memories}
local at = redis.call('HMGET', journal, 'jb', cursor)
if not at[1] then return {{}, {}, {}} end
local start = tonumber(at[2]) - tonumber(at[1])
local entries = redis.call('LRANGE', journal_list, math.max(start - context, 0), start + limit - 1)
return {redis.call('HGETALL', journal), entries, redis.call('HGETALL', journal_own)}
