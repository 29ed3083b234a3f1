#!lua
-- Counts feedback, once per `id`. `outcome` is "1" (helped) or "0" (failed).
-- KEYS: record, feedback, failing
-- ARGV: guard: json, pid, id, outcome, score?, entry, most_feedback: number, most_outcomes: number
-- -> 1, or 0 if the procedure is missing
local clock = require("storage/clock")
local erasures = require("storage/erasures")
if erasures.is_active(guard) then erasures.raise(erasures.objection_to_document(guard, record)) end
if redis.call('EXISTS', record) == 0 then return 0 end
for _, earlier in ipairs(redis.call('LRANGE', feedback, 0, -1)) do
  if string.find(earlier, '"id":"' .. id .. '"', 1, true) then return 1 end
end
redis.call('HDEL', record, 'im')
redis.call('HINCRBY', record, outcome == '1' and 'h' or 'f', 1)
if score then
  redis.call('HINCRBYFLOAT', record, 'ss', score)
  redis.call('HINCRBY', record, 'sc', 1)
end
local outcomes = (redis.call('HGET', record, 'o') or '') .. outcome
redis.call('HSET', record, 'o', string.sub(outcomes, -most_outcomes), 'fa', clock.us_text())
if outcome == '0' then redis.call('SADD', failing, pid) end
redis.call('RPUSH', feedback, entry)
redis.call('LTRIM', feedback, -most_feedback, -1)
return 1
