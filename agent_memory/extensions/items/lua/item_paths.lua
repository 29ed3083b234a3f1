#!lua flags=allow-oom
-- Lists the paths of one owner with items.
-- KEYS: items, expiries, paths, owners
-- ARGV: root, owner
local entries = require("items/entries")
entries.remove_ended()
return redis.call('HKEYS', paths)
