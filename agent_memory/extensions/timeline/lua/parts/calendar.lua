-- Makes the names of periods in keys: the unit's letter and the first day in days since 1970 (d19785, w19783, m19783).
local M = {}
local units = {day = 1, week = 2, month = 3, year = 4}
-- Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", 2013: civil_from_days.
local function day_of_month(day)
  local shifted = (day + 719468) % 146097
  local year = math.floor((shifted - math.floor(shifted / 1460) + math.floor(shifted / 36524) - math.floor(shifted / 146096)) / 365)
  local rest = shifted - (365 * year + math.floor(year / 4) - math.floor(year / 100))
  return rest - math.floor((153 * math.floor((5 * rest + 2) / 153) + 2) / 5) + 1
end
-- Return the name of the period that contains a day; nil for a year, because years have no summary.
function M.period(unit, day)
  if unit == 'day' then return string.format('d%d', day) end
  if unit == 'week' then return string.format('w%d', day - (day + 3) % 7) end
  if unit == 'month' then return string.format('m%d', day - day_of_month(day) + 1) end
  return nil
end
-- Return the name of an event's period, of `unit` or of the event's precision if that is longer. Quotation marks in
-- texts are escaped, so the match cannot hit a text.
function M.of_event(unit, day, event)
  local precision = string.match(event, '"precision":"(%a+)"') or 'day'
  if units[precision] and units[precision] > units[unit] then unit = precision end
  return M.period(unit, day)
end
return M
