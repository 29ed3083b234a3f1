#!lua flags=no-writes
-- What the summary of a period is made of: events that begin in it, and the summaries of its days.
--   series  the precisions of the events; `children` the days; `most` so many events of each precision
-- KEYS: any
-- ARGV: root, owner, period, low: number, high: number, series: json, children: json, most: number
-- -> its mark ("" when it does not wait), how many events there are, {event…}, {summary or "", for each child},
--    {when it may be made or "", for each child}
local base = root .. 'tl:' .. owner
local key = base .. ':s'
local events, summaries, waits = {}, {}, {}
for _, name in ipairs(series) do
  for _, event in ipairs(redis.call('ZRANGEBYSCORE', base .. ':b:' .. name, low, high, 'LIMIT', 0, most)) do
    events[#events + 1] = redis.call('HGET', base, 'e' .. event)
  end
end
for i, child in ipairs(children) do
  summaries[i] = redis.call('HGET', key, child) or ''
  waits[i] = redis.call('HEXISTS', key, 'g' .. child) == 1 and redis.call('ZSCORE', base .. ':p', child) or ''
end
return {redis.call('HGET', key, 'g' .. period) or '', redis.call('HGET', key, 'c' .. period) or '0', events, summaries, waits}
