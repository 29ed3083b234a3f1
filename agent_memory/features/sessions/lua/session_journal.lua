#!lua flags=no-writes
-- What of a session waits, read in one step: between two reads another worker could trim what it has done. `cursor` is "jp" (promotion) or
-- "je" (extraction), `context` how many messages before it are read, too.
-- KEYS: journal, journal_list, journal_own
-- ARGV: cursor, limit: number, context: number
-- -> {the journal's fields, entries, memories}
local at = redis.call('HMGET', journal, 'jb', cursor)
if not at[1] then return {{}, {}, {}} end
local start = tonumber(at[2]) - tonumber(at[1])
local entries = redis.call('LRANGE', journal_list, math.max(start - context, 0), start + limit - 1)
return {redis.call('HGETALL', journal), entries, redis.call('HGETALL', journal_own)}
