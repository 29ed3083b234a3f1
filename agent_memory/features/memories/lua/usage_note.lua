#!lua
-- Counts readings, except of deleted memories and within `same_reading_ms` of the last one. `unfolded` has the mids
-- whose usage is not in the index yet; `readings` has for each memory its mid and the count that was shown.
-- KEYS: usage, unfolded, memories...
-- ARGV: same_reading_ms: number, readings...
-- -> how many were counted
local clock = require("storage/clock")
local counted = 0
for i = 0, #KEYS - memories_at do
  local mid, shown_count = ARGV[readings_at + 2 * i], tonumber(ARGV[readings_at + 2 * i + 1])
  local count, last = string.match(redis.call('HGET', usage, mid) or '', '^(%d+) (%d+)$')
  local is_new = not last or clock.ms - tonumber(last) >= same_reading_ms
  if is_new and redis.call('EXISTS', KEYS[memories_at + i]) == 1 then
    redis.call('HSET', usage, mid, string.format('%.0f %.0f', math.max(tonumber(count or '0'), shown_count) + 1, clock.ms))
    redis.call('SADD', unfolded, mid)
    counted = counted + 1
  end
end
return counted
