#!lua
-- Counts a call of a tool: see `tool_record.lua`.
-- KEYS: tool
-- ARGV: call: json
local tool_record = require("procedures/tool_record")
tool_record.record(tool, call)
return 1
