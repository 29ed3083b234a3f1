#!lua flags=no-writes
-- Refuses for an owner whose erasure is under way: see `erasures.lua`.
-- KEYS: any
-- ARGV: guard: json
local erasures = require("storage/erasures")
erasures.refuse(guard)
return 1
