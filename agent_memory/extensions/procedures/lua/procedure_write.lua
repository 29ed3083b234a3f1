#!lua
-- Writes the content of a procedure. `procedure_put.lua` describes the arguments.
-- KEYS: record, changes, order, order_due, order_dead, wake
-- ARGV: guard: json, expected, fields: json, unset: json, change, most_changes: number, vector_field, vector?, order_json?
-- -> the new version, or nil if the version is not the expected one
local procedure_put = require("procedures/procedure_put")
local erasures = require("storage/erasures")
erasures.refuse(guard)
return procedure_put.put()
