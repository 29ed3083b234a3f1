#!lua flags=allow-oom
-- Returns the namespace paths of one owner that contain items.
-- KEYS: items, expiries, paths, owners
-- ARGV: root, owner
local entries = require("items/entries")
entries.remove_ended()
return redis.call('HKEYS', paths)
