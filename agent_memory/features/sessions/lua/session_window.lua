#!lua flags=no-writes
-- Returns a session's newest messages that fit a window, but at least the newest one. A message counts its tokens and
-- `overhead`. The default is the session's own window. If any message has more than text, up to `most_before` earlier
-- messages follow, which may contain the tool calls that the first messages answer.
-- KEYS: messages, meta
-- ARGV: window: number?, default_window: number, overhead: number, most_before: number
-- -> {number of messages, number that fit, entries (newest first)…}
local session = redis.call('HMGET', meta, 'cw', 'mx')
local left = window or tonumber(session[1] or '') or default_window
local before = session[2] and most_before or 0
local answer, fit = {redis.call('LLEN', messages), 0}, nil
local last, step = answer[1] - 1, 32
while last >= 0 do
  local first = math.max(last - step + 1, 0)
  local entries = redis.call('LRANGE', messages, first, last)
  for i = #entries, 1, -1 do
    left = left - tonumber(string.match(entries[i], '^%-?%d+ (%d+) ')) - overhead
    if not fit and left < 0 and #answer > 2 then fit = #answer - 2 end
    if fit and #answer - 2 - fit >= before then
      answer[2] = fit
      return answer
    end
    answer[#answer + 1] = entries[i]
  end
  last, step = first - 1, math.min(step * 2, 512)
end
answer[2] = fit or #answer - 2
return answer
