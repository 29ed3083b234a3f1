#!lua
-- Merges a patch into a session's data.
-- KEYS: meta
-- ARGV: guard: json, if_match?, json
-- -> {"ok", version} | {"mismatch", version} | {"missing"}
local clock = require("storage/clock")
local erasures = require("storage/erasures")
local merge_patch = require("sessions/merge_patch")
local session = redis.call('HMGET', meta, 'v', 'data', 'ag')
erasures.refuse(guard, session[3])
local version, data = session[1], session[2]
if not version then return {'missing'} end
if if_match and if_match ~= '*' and if_match ~= version then return {'mismatch', version} end
redis.call('HDEL', meta, 'im')
redis.call('HSET', meta, 'data', merge_patch.apply(data or '{}', json), 'ua', clock.us_text())
return {'ok', string.format('%.0f', redis.call('HINCRBY', meta, 'v', 1))}
