-- Aliases are other ids of a memory. `al:<name>` is "<mid> <digest>", with the digest of the record under that name.
-- NEEDS: root
local clock = require("storage/clock")
local change_log = require("memories/change_log")
-- Returns the mid and the digest of an alias; nil if the name is no alias.
local function target_of(name)
  return string.match(redis.call('GET', root .. 'al:' .. name) or '', '^(%S+) ?(.*)$')
end
local function set(name, mid, digest)
  redis.call('SET', root .. 'al:' .. name, mid .. ' ' .. (digest or ''))
  redis.call('ZADD', root .. 'mh:' .. mid, clock.us, 'a' .. name)
  change_log.add('a', name, mid)
end
local function remove(name)
  local target = target_of(name)
  if target then
    redis.call('ZREM', root .. 'mh:' .. target, 'a' .. name)
    redis.call('DEL', root .. 'al:' .. name)
  end
end
local function names_of(mid)
  local names = {}
  for _, member in ipairs(redis.call('ZRANGE', root .. 'mh:' .. mid, 0, -1)) do
    if string.sub(member, 1, 1) == 'a' then names[#names + 1] = string.sub(member, 2) end
  end
  return names
end
-- Moves all aliases of a memory to another memory; calls `moved(name, digest)` for each.
local function move_all(from, to, moved)
  for _, name in ipairs(names_of(from)) do
    local _, digest = target_of(name)
    remove(name)
    set(name, to, digest)
    if moved then moved(name, digest) end
  end
end
return {target_of = target_of, names_of = names_of, set = set, remove = remove, move_all = move_all}
