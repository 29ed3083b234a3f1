#!lua flags=allow-oom
-- Ends the claim of successful work. `token` is the token of a claim that began, else the claim's lease. Removes the
-- mark, or keeps it due if it was set again in the meantime. Does not change claims of other workers.
-- KEYS: due, tries, reasons, dead, wake
-- ARGV: member, token
-- -> 1 gone, 0 still due
local clock = require("storage/clock")
local outbox = require("storage/outbox")
local score = redis.call('ZSCORE', due, member)
local record = redis.call('HGET', tries, member) or ''
local leased_until = string.match(record, '^%d+ (%d+)')
if score and (string.match(record, ' b(%d+)') or leased_until) ~= token then return 0 end
redis.call('ZREM', dead, member)
redis.call('HDEL', tries, member)
redis.call('HDEL', reasons, member)
if not score then return 1 end
if tonumber(score) ~= tonumber(leased_until) then return 0 end
if not string.match(record, '^%d+ %d+.* [12]$') then return redis.call('ZREM', due, member) end
redis.call('ZADD', due, clock.ms, member)
outbox.wake_dispatcher(wake)
return 0
