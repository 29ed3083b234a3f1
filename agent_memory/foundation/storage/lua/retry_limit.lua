-- How often work may fail: what failed `max_attempts` times is given up (a dead letter, which an operator replays or drops).
-- NEEDS: due, tries, reasons, dead, max_attempts, never_ended
local clock = require("storage/clock")
local function is_reached(failed) return failed >= max_attempts end
-- The reason stays that of the last failure; what never failed by itself, but died with its workers, gets one.
local function give_up(member)
  redis.call('ZREM', due, member)
  redis.call('HDEL', tries, member)
  redis.call('ZADD', dead, clock.ms, member)
  redis.call('HSETNX', reasons, member, never_ended)
end
return {is_reached = is_reached, give_up = give_up}
