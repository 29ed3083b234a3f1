#!lua flags=no-writes
-- Raises an error if an erasure of the owner is under way. See `erasures.lua`.
-- KEYS: any
-- ARGV: guard: json
local erasures = require("storage/erasures")
erasures.refuse(guard)
return 1
