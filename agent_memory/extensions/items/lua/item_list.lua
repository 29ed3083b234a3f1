#!lua flags=allow-oom
-- Reads a page of one owner's entries between two bounds, each with the requested fields of its item.
-- KEYS: items, expiries, paths, owners
-- ARGV: root, owner, low, high, offset: number, limit: number, fields...
-- -> {entry, {value of each field}}…
local entries = require("items/entries")
entries.remove_ended()
local rows = {}
for _, member in ipairs(redis.call('ZRANGEBYLEX', items, low, high, 'LIMIT', offset, limit)) do
  rows[#rows + 1] = {member, redis.call('HMGET', root .. 'it:' .. string.sub(member, -32), unpack(ARGV, fields_at))}
end
return rows
