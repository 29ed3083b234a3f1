-- Periods that wait for a summary (:p, by when they are due), and timelines with such periods (tlp, by the earliest).
-- NEEDS: root
local M = {}
function M.note(owner)
  local first = redis.call('ZRANGE', root .. 'tl:' .. owner .. ':p', 0, 0, 'WITHSCORES')
  if first[2] then
    redis.call('ZADD', root .. 'tlp', first[2], owner)
  else
    redis.call('ZREM', root .. 'tlp', owner)
  end
end
return M
