#!lua flags=no-writes
-- The newest messages of a session whose tokens, each with an overhead, fit into a window; the very newest in any case. Without a window
-- it is the session's own, or else the default one. However long the session is, no more is looked at than what is answered, and a little.
-- Where messages hold more than text, up to `most_before` before those that fit are answered, too: the first that fit may answer a call of
-- theirs.
-- KEYS: messages, meta
-- ARGV: window: number?, default_window: number, overhead: number, most_before: number
-- -> {how many there are, how many fit, entries, newest first…}
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
