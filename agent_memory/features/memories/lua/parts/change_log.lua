-- Records line by line what a group of steps did, as a change that can be undone:
--   m <mid> <version before or -> <version after or ->: a memory changed
--   a <name> <mid>: an alias was added; u <name> <mid> <digest>: an alias was removed
--   e <mid> <field>: evidence was added
-- NEEDS: root
local clock = require("storage/clock")
local lines = {}
local function clear() lines = {} end
local function add(...) lines[#lines + 1] = table.concat({...}, ' ') end
local function remember(id, fields, mids)
  local items = table.concat(lines, '\n')
  redis.call('HSET', root .. 'ch:' .. id, 'at', clock.seconds_text(), 'i', items, 'ms', table.concat(mids, ' '), unpack(fields))
  for _, mid in ipairs(mids) do redis.call('ZADD', root .. 'mh:' .. mid, clock.us, 'c' .. id) end
end
return {clear = clear, add = add, remember = remember}
