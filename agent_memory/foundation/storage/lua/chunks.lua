-- Runs a command with more values than Lua can unpack at once: in chunks of 1,000.
local function call(command, key, values)
  for i = 1, #values, 1000 do redis.call(command, key, unpack(values, i, math.min(i + 999, #values))) end
end
return {call = call}
