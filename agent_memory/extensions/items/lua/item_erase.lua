#!lua flags=allow-oom
-- Deletes up to a thousand items of one owner; -> how many.
-- KEYS: items, expiries, paths, owners
-- ARGV: root, owner
local entries = require("items/entries")
local count = 0
for _, member in ipairs(redis.call('ZRANGE', items, 0, 999)) do count = count + entries.remove(member) end
return count
