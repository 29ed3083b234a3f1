-- Keeps `tlp`, the timelines with periods that wait for a summary, each scored by when its earliest period is due. `:p`
-- has a timeline's waiting periods by when they are due.
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
