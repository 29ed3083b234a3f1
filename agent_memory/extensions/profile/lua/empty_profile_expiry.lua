-- Lets the version and the moves of an empty profile expire after 30 days, the time for which deleted memories are
-- kept.
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
local function cancel(root, owner, user_key)
  local base = root .. 'pf:' .. owner
  redis.call('HSET', base .. ':r', 'u', user_key)
  for _, key in ipairs({base .. ':r', base .. ':h', root .. 'pfu:' .. user_key}) do redis.call('PERSIST', key) end
end
return {start = start, cancel = cancel}
