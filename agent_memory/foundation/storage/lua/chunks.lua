-- Commands with more values than Lua can unpack at once.
local function call(command, key, values)
  for i = 1, #values, 1000 do redis.call(command, key, unpack(values, i, math.min(i + 999, #values))) end
end
return {call = call}
