-- Converts the times in records to seconds since 1970.
-- Returns the days from 1970 to a date of the proleptic Gregorian calendar. The formula is from Howard Hinnant,
-- "chrono-Compatible Low-Level Date Algorithms".
local function days_of(year, month, day)
  if month <= 2 then year = year - 1 end
  local era = math.floor(year / 400)
  local year_of_era = year - era * 400
  local day_of_year = math.floor((153 * (month + (month > 2 and -3 or 9)) + 2) / 5) + day - 1
  return era * 146097 + year_of_era * 365 + math.floor(year_of_era / 4) - math.floor(year_of_era / 100) + day_of_year - 719468
end
-- Parses "2024-03-01T12:00:00.5Z", or a time with an offset ("+02:00"). Returns nil for any other text.
local function seconds_of(text)
  if type(text) ~= 'string' then return nil end
  local year, month, day, hours, minutes, seconds, zone = string.match(text, '^(%d+)-(%d+)-(%d+)T(%d+):(%d+):([%d%.]+)(.*)$')
  if not year then return nil end
  local whole = days_of(tonumber(year), tonumber(month), tonumber(day)) * 86400 + tonumber(hours) * 3600 + tonumber(minutes) * 60
  local sign, zone_hours, zone_minutes = string.match(zone, '^([+-])(%d+):(%d+)')
  local offset = sign and (tonumber(zone_hours) * 3600 + tonumber(zone_minutes) * 60) * (sign == '-' and -1 or 1) or 0
  return whole + (tonumber(seconds) or 0) - offset
end
return {seconds_of = seconds_of}
