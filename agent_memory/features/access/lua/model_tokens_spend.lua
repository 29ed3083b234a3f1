#!lua flags=allow-oom
-- Adds model tokens to a tenant's usage of today. 0 tokens only read it.
-- KEYS: spent
-- ARGV: day_ms: number, tokens: number
-- -> {tokens of today, ms until tomorrow}
local clock = require("storage/clock")
local today = math.floor(clock.ms / day_ms)
local noted = redis.call('HMGET', spent, 'd', 'm')
local total = tonumber(noted[1] or '-1') == today and tonumber(noted[2]) or 0
if tokens > 0 then
  total = total + tokens
  redis.call('HSET', spent, 'd', string.format('%.0f', today), 'm', string.format('%.0f', total))
  redis.call('PEXPIRE', spent, 2 * day_ms)
end
return {string.format('%.0f', total), string.format('%.0f', (today + 1) * day_ms - clock.ms)}
