#!lua flags=no-writes
-- Reads the inputs for a period's summary: events that begin in it, and the summaries of its days.
--   series    facets of the precisions that the events must have
--   children  the period's days, as names in keys
--   most      most events per precision
-- KEYS: config
-- ARGV: root, owner, period, low: number, high: number, series: json, children: json, most: number
-- -> mark ("" if the period does not wait), number of events, {event…}, {summary or "" of each child},
--    {due time of each waiting child, or ""}
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
