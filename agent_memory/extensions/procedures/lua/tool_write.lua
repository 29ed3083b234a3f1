#!lua
-- Counts a call of a tool. `tool_record.lua` describes a call.
-- KEYS: tool
-- ARGV: guard: json, call: json
local tool_record = require("procedures/tool_record")
local erasures = require("storage/erasures")
erasures.refuse(guard)
tool_record.record(tool, call)
return 1
