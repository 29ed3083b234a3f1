#!lua
-- Changes the state of the change of the model, if its phase is one of `phases` ("" if there is no such change).
--   most_missing   refuse while more vectors are missing
--   since          the time, if the progress is measured again from now on
-- KEYS: state, todo, config
-- ARGV: phases: json, most_missing: number?, since?, fields: json
-- -> 1, 0 in another phase, or -1 if too many vectors are missing
local phase = redis.call('HGET', state, 'phase') or ''
for _, allowed in ipairs(phases) do
  if allowed == phase then
    local left = redis.call('SCARD', todo)
    if most_missing and left > most_missing then return -1 end
    if phase == '' then redis.call('HDEL', config, 'only') end
    redis.call('HSET', state, unpack(fields))
    if since then redis.call('HSET', state, 'since', since, 'left', left) end
    return 1
  end
end
return 0
