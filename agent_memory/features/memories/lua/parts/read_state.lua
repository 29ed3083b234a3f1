-- Returns true if a memory changed after a worker read it. The worker sends the state that it read: version, when last said, times said,
-- when outdated, number of pieces of evidence, and the digest of the record (indexing marks a record without a new
-- version). No values: the memory did not exist.
-- NEEDS: root
local function has_changed(key, mid, state)
  if #state == 0 then return redis.call('EXISTS', key) == 1 end
  local stored = redis.call('HMGET', key, 'n', 'ls', 'ts', 'nt', 'j')
  for i = 1, 4 do
    if (stored[i] or '') ~= state[i] then return true end
  end
  return tostring(redis.call('HLEN', root .. 'ev:' .. mid)) ~= state[5] or redis.sha1hex(stored[5]) ~= state[6]
end
return {has_changed = has_changed}
