#!lua flags=allow-oom
-- Ends the claim of failed work. The mark is due again after a delay. Stores the reason; '' keeps the last one. With
-- `forgive`, the try does not count. A mark that was set again, or is due earlier for another reason, does not wait.
-- KEYS: due, tries, reasons, wake
-- ARGV: member, token, delay_ms: number, reason, forgive: flag
-- -> 1 if the claim was still ours
local clock = require("storage/clock")
local outbox = require("storage/outbox")
local score = redis.call('ZSCORE', due, member)
local record = redis.call('HGET', tries, member) or ''
local failed, leased_until = string.match(record, '^(%d+) (%d+)')
if not score or (string.match(record, ' b(%d+)') or leased_until) ~= token then return 0 end
if reason ~= '' then redis.call('HSET', reasons, member, reason) end
if not forgive then failed = failed + 1 end
redis.call('HSET', tries, member, string.format('%d 0', failed))
if string.match(record, '^%d+ %d+.* 1$') and tonumber(score) == tonumber(leased_until) then
  redis.call('ZADD', due, clock.ms, member)
  outbox.wake_dispatcher(wake)
elseif tonumber(score) == tonumber(leased_until) then
  redis.call('ZADD', due, clock.ms + delay_ms, member)
end
return 1
