#!lua flags=no-writes
-- Reads the events from day `low` to day `high`, ordered by first day.
--   series, other  facets (topic, entity) that the events must have; "" for no condition
--   unit           also read the summaries of the events' periods of this unit; "" for no summaries
-- KEYS: config
-- ARGV: root, owner, low, high, series, other, unit, offset: number, limit: number
-- -> total, page of events, {period, summary or "", mark if the period waits or "", …}
local calendar = require("timeline/calendar")
local base = root .. 'tl:' .. owner
local suffix = series == '' and '' or ':' .. series
local starts, ends = base .. ':b' .. suffix, base .. ':e' .. suffix
local function holds(name) return other == '' or redis.call('ZSCORE', base .. ':b:' .. other, name) end
-- Events that began before `low` and ended on or after it.
local before, names = {}, {}
if low ~= '-inf' then
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', ends, low, '+inf')) do
    local day = tonumber(redis.call('ZSCORE', starts, name))
    if day < tonumber(low) and holds(name) then before[#before + 1] = {day, name} end
  end
  table.sort(before, function(a, b)
    if a[1] ~= b[1] then return a[1] < b[1] end
    return a[2] < b[2]
  end)
end
local total = #before
for i = offset + 1, math.min(offset + limit, total) do names[#names + 1] = before[i][2] end
local skip = math.max(0, offset - total)
if other == '' then
  total = total + redis.call('ZCOUNT', starts, low, high)
  if #names < limit then
    for _, name in ipairs(redis.call('ZRANGEBYSCORE', starts, low, high, 'LIMIT', skip, limit - #names)) do names[#names + 1] = name end
  end
else
  local matched = 0
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', starts, low, high)) do
    if holds(name) then
      matched = matched + 1
      if matched > skip and #names < limit then names[#names + 1] = name end
    end
  end
  total = total + matched
end
local events, summaries, visited = {}, {}, {}
for i, name in ipairs(names) do
  events[i] = redis.call('HGET', base, 'e' .. name)
  local period = unit ~= '' and calendar.of_event(unit, tonumber(redis.call('ZSCORE', starts, name)), events[i])
  if period and not visited[period] then
    visited[period] = true
    local stored = redis.call('HMGET', base .. ':s', period, 'g' .. period)
    for _, value in ipairs({period, stored[1] or '', stored[2] or ''}) do summaries[#summaries + 1] = value end
  end
end
return {total, events, summaries}
