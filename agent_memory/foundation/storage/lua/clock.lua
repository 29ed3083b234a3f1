-- Redis' own time, the same during a script: whole microseconds and milliseconds since 1970.
local time = redis.call('TIME')
local us = time[1] * 1000000 + time[2]
local function us_text() return string.format('%.0f', us) end
-- Seconds with their parts.
local function seconds_text() return string.format('%.6f', us / 1000000) end
return {us = us, ms = math.floor(us / 1000), us_text = us_text, seconds_text = seconds_text}
