-- A profile of no memories keeps its version and its latest moves for as long as a deleted memory is remembered, and then goes.
local SECONDS = 2592000
local function start(root, owner)
  local base = root .. 'pf:' .. owner
  local user_key = redis.call('HGET', base .. ':r', 'u')
  redis.call('EXPIRE', base .. ':r', SECONDS)
  redis.call('EXPIRE', base .. ':h', SECONDS)
  if not user_key then return end
  for _, name in ipairs(redis.call('HKEYS', root .. 'pfu:' .. user_key)) do
    if redis.call('EXISTS', root .. 'pf:' .. name) == 1 then return end
  end
  redis.call('EXPIRE', root .. 'pfu:' .. user_key, SECONDS)
end
-- It holds a memory (again).
local function cancel(root, owner, user_key)
  local base = root .. 'pf:' .. owner
  redis.call('HSET', base .. ':r', 'u', user_key)
  for _, key in ipairs({base .. ':r', base .. ':h', root .. 'pfu:' .. user_key}) do redis.call('PERSIST', key) end
end
return {start = start, cancel = cancel}
