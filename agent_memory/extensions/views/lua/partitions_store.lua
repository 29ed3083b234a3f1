#!lua
-- Stores partitions of an existing view, unless one of the memories that they summarize (`mids`) was deleted since.
-- `partitions` alternates fields and values of the hash.
-- KEYS: views, partitions_key
-- ARGV: root, view_id, guards: json, mids: json, partitions...
-- -> 1, 0 if the view is missing, or -1 if a memory was deleted
local chunks = require("storage/chunks")
local erasures = require("storage/erasures")
for _, guard in ipairs(guards) do erasures.refuse(guard) end
if redis.call('HEXISTS', views, view_id) == 0 then return 0 end
for _, mid in ipairs(mids) do if redis.call('EXISTS', root .. 'm:' .. mid) == 0 then return -1 end end
local items = {}
for i = partitions_at, #ARGV do items[#items + 1] = ARGV[i] end
chunks.call('HSET', partitions_key, items)
return 1
