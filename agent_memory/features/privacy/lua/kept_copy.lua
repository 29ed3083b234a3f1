-- Copies the data that an undo of forgetting needs to fields of the hash `receipt`. Without `keeps`, keeps nothing.
--   d <key>        a key as DUMP gives it         k <mid>     the keys of a deleted memory, in order
--   z <order> <mid>  a message's position          f <key> <field>  a field of a hash that was set (JSON: before, after)
--   p <mid>        the version of a memory when it lost former versions
--   o <mid>        an id that other owners cannot use until the undo time ends (`fo:<mid>` names its owner)
--   e <list> <number>  an entry of a list (JSON: before, after)
--   h <sid>        the new fence of a session            j <journal>  its cursors before      c <change>  a proposal
--   b <sid>        the creation time of a session
-- NEEDS: root, receipt, keeps
local aliases = require("memories/aliases")
local function keep(name, value)
  if keeps and value then redis.call('HSETNX', receipt, name, value) end
end
local function add_key(keys, name)
  if redis.call('EXISTS', root .. name) == 0 then return end
  keys[#keys + 1] = name
  keep('d ' .. name, redis.call('DUMP', root .. name))
end
local function add_memory(keys, mid)
  for _, member in ipairs(redis.call('ZRANGE', root .. 'mh:' .. mid, 0, -1)) do
    local kind, rest = string.sub(member, 1, 1), string.sub(member, 2)
    if kind == 'c' then
      add_key(keys, 'ch:' .. rest)
    elseif kind == 'a' then
      add_key(keys, 'al:' .. rest)
      add_memory(keys, rest)
    else
      add_key(keys, 'h:' .. mid .. '.' .. member)
    end
  end
  for _, name in ipairs({'mh:', 'ev:', 'h:', 'v:', 'm:'}) do add_key(keys, name .. mid) end
end
local function keep_memory(mid)
  if not keeps then return end
  local keys = {}
  add_memory(keys, mid)
  keep('k ' .. mid, table.concat(keys, ' '))
end
local function keep_position(order, mid)
  if order ~= '' then keep('z ' .. order .. ' ' .. mid, redis.call('ZSCORE', order, mid)) end
end
-- Keeps the positions of the messages that are aliases of a memory, in the order of their sessions.
local function keep_positions(positions)
  for order, message in string.gmatch(positions, '([^\n]+) (%x+)') do keep_position(order, message) end
end
local function keep_field(key, name, before, after)
  keep('f ' .. key .. ' ' .. name, cjson.encode({before or false, after or false}))
end
return {keep = keep, keep_memory = keep_memory, keep_position = keep_position, keep_positions = keep_positions, keep_field = keep_field}
