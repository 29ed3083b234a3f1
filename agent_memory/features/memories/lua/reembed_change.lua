#!lua
-- Changes the state of the change of the model, if its phase is one of `phases` ("" if there is no such change).
--   drained   refuse while vectors are missing
-- KEYS: state, todo, config
-- ARGV: phases: json, drained: flag, fields: json
-- -> 1, 0 in another phase, or -1 if vectors are missing
local phase = redis.call('HGET', state, 'phase') or ''
for _, allowed in ipairs(phases) do
  if allowed == phase then
    if drained and redis.call('SCARD', todo) > 0 then return -1 end
    if phase == '' then redis.call('HDEL', config, 'gone') end
    redis.call('HSET', state, unpack(fields))
    return 1
  end
end
return 0
