#!lua
-- Writes the content of a procedure: see `procedure_put.lua`.
-- KEYS: record, changes, order, order_due, order_dead, wake
-- ARGV: guard: json, expected, fields: json, unset: json, change, most_changes: number, vector_field, vector?, order_json?
-- -> the new version, or nil when it has another one than expected
local procedure_put = require("procedures/procedure_put")
local erasures = require("storage/erasures")
erasures.refuse(guard)
return procedure_put.put()
