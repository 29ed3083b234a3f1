-- Redis' time, which stays the same during a script: whole microseconds (`us`) and milliseconds (`ms`) since 1970.
local time = redis.call('TIME')
local us = time[1] * 1000000 + time[2]
local function us_text() return string.format('%.0f', us) end
-- Seconds since 1970 with six decimals.
local function seconds_text() return string.format('%.6f', us / 1000000) end
return {us = us, ms = math.floor(us / 1000), us_text = us_text, seconds_text = seconds_text}
