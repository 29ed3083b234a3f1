#!lua flags=allow-oom
-- Deletes up to 1,000 items of one owner.
-- -> the number of deleted items
-- KEYS: items, expiries, paths, owners
-- ARGV: root, owner
local entries = require("items/entries")
local count = 0
for _, member in ipairs(redis.call('ZRANGE', items, 0, 999)) do count = count + entries.remove(member) end
return count
