#!lua flags=allow-oom
-- Every path of one owner that holds items.
-- KEYS: items, expiries, paths, owners
-- ARGV: root, owner
local entries = require("items/entries")
entries.remove_ended()
return redis.call('HKEYS', paths)
