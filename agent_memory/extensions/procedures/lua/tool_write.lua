#!lua
-- Counts a call of a tool: see `tool_record.lua`.
-- KEYS: tool
-- ARGV: guard: json, call: json
local tool_record = require("procedures/tool_record")
local erasures = require("storage/erasures")
erasures.refuse(guard)
tool_record.record(tool, call)
return 1
