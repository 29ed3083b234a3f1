#!lua flags=no-writes
-- Reads for a prompt: the latest events from day `low` to day `high` (with `events`), and the summaries of `periods`
-- and of the periods in which the latest events began.
-- KEYS: config
-- ARGV: root, owner, low, high, events: flag, periods: json, most: number
-- -> {event…}, {period, summary, …}
local calendar = require("timeline/calendar")
local base = root .. 'tl:' .. owner
local starts, ends = base .. ':b', base .. ':e'
local names, period_list, event_rows, summaries = {}, {}, {}, {}
if events and low ~= '-inf' then
  -- Events that began before `low` and ended on or after it.
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', ends, low, '+inf', 'LIMIT', 0, most)) do
    if tonumber(redis.call('ZSCORE', starts, name)) < tonumber(low) then names[#names + 1] = name end
  end
end
local latest = redis.call('ZREVRANGEBYSCORE', starts, high, low, 'WITHSCORES', 'LIMIT', 0, most)
for i = 1, #latest, 2 do
  names[#names + 1] = latest[i]
  for _, unit in ipairs({'day', 'week', 'month'}) do period_list[#period_list + 1] = calendar.period(unit, tonumber(latest[i + 1])) end
end
for _, period in ipairs(periods) do period_list[#period_list + 1] = period end
local visited = {}
for _, period in ipairs(period_list) do
  local summary = not visited[period] and redis.call('HGET', base .. ':s', period)
  visited[period] = true
  if summary then
    summaries[#summaries + 1] = period
    summaries[#summaries + 1] = summary
  end
end
for i, name in ipairs(events and names or {}) do event_rows[i] = redis.call('HGET', base, 'e' .. name) end
return {event_rows, summaries}
