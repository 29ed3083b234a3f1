-- Limits how often work may fail. A mark that failed `max_attempts` times becomes a dead letter, which an operator
-- replays or drops.
-- NEEDS: due, tries, reasons, dead, max_attempts, never_ended
local clock = require("storage/clock")
local function is_reached(failed) return failed >= max_attempts end
-- Keeps the reason of the last failure. If the workers died before they stored one, the reason is `never_ended`.
-- The record "0 0 d<failed tries>" tells how often work failed; a mark that is set again starts with 0 tries.
local function give_up(member, failed)
  redis.call('ZREM', due, member)
  redis.call('HSET', tries, member, '0 0 d' .. failed)
  redis.call('ZADD', dead, clock.ms, member)
  redis.call('HSETNX', reasons, member, never_ended)
end
return {is_reached = is_reached, give_up = give_up}
