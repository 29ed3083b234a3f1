#!lua
-- Stores partitions of an existing view. `partitions` alternates fields and values of the hash.
-- KEYS: views, partitions_key
-- ARGV: view_id, guards: json, partitions...
-- -> 1, or 0 if the view is missing
local chunks = require("storage/chunks")
local erasures = require("storage/erasures")
for _, guard in ipairs(guards) do erasures.refuse(guard) end
if redis.call('HEXISTS', views, view_id) == 0 then return 0 end
local items = {}
for i = partitions_at, #ARGV do items[#items + 1] = ARGV[i] end
chunks.call('HSET', partitions_key, items)
return 1
