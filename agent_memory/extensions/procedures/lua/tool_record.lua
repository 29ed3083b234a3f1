-- Counts a call in a tool's statistics. A call has `fields` (of a new tool's hash), `ok`, `at` (µs), `shape` (argument
-- types as JSON), and optionally `ms`, `cost`, `example`, `error`. Keeps the 8 most used shapes and the last 3 errors.
local MOST_SHAPES, MOST_ERRORS = 8, 3
local function count_shape(key, call)
  local shapes, own, least = cjson.decode(redis.call('HGET', key, 'sh') or '[]'), nil, nil
  for _, shape in ipairs(shapes) do if shape.s == call.shape then own = shape end end
  if not own then
    own = {s = call.shape, h = 0, f = 0}
    shapes[#shapes + 1] = own
  end
  if call.ok then
    own.h = own.h + 1
    own.e = call.example
  else
    own.f = own.f + 1
  end
  if #shapes > MOST_SHAPES then
    for at, shape in ipairs(shapes) do
      if shape ~= own and (not least or shape.h + shape.f < shapes[least].h + shapes[least].f) then least = at end
    end
    table.remove(shapes, least)
  end
  redis.call('HSET', key, 'sh', cjson.encode(shapes))
end
local function record(key, call)
  if redis.call('EXISTS', key) == 0 then redis.call('HSET', key, unpack(call.fields)) end
  redis.call('HDEL', key, 'im')
  redis.call('HINCRBY', key, call.ok and 'h' or 'f', 1)
  if call.ms then
    redis.call('HINCRBYFLOAT', key, 'ms', string.format('%.6f', call.ms))
    redis.call('HINCRBY', key, 'mc', 1)
  end
  if call.cost then
    redis.call('HINCRBYFLOAT', key, 'cs', string.format('%.9f', call.cost))
    redis.call('HINCRBY', key, 'cc', 1)
  end
  if tonumber(redis.call('HGET', key, 'la') or '0') < tonumber(call.at) then redis.call('HSET', key, 'la', call.at) end
  count_shape(key, call)
  if call.error then
    local errors = cjson.decode(redis.call('HGET', key, 'er') or '[]')
    errors[#errors + 1] = call.error
    if #errors > MOST_ERRORS then table.remove(errors, 1) end
    redis.call('HSET', key, 'er', cjson.encode(errors))
  end
end
return {record = record}
