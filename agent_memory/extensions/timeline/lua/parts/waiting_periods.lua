-- The periods of a timeline that wait for their summary (:p, by when they may be made), and the timelines that have such (tlp, by the
-- earliest of these).
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
