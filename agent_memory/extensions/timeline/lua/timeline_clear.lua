#!lua flags=allow-oom
-- Deletes a timeline. `rebuilds` changes nothing: a rebuilt timeline keeps nothing of the former one.
-- KEYS: config
-- ARGV: root, owner, user_key, rebuilds: flag
-- -> number of memories in the deleted timeline
local base = root .. 'tl:' .. owner
local keys, memories = {}, 0
for _, suffix in ipairs({'', ':b', ':e', ':s', ':p'}) do keys[base .. suffix] = true end
local flat = redis.call('HGETALL', base)
for i = 1, #flat, 2 do
  if string.sub(flat[i], 1, 1) == 'm' then
    memories = memories + 1
    keys[root .. 'tlo:' .. string.sub(flat[i], 2)] = true
    for _, head in ipairs(cjson.decode(flat[i + 1])) do
      for _, name in ipairs(head.f) do
        keys[base .. ':b:' .. name] = true
        keys[base .. ':e:' .. name] = true
      end
    end
  end
end
for key in pairs(keys) do redis.call('DEL', key) end
redis.call('HDEL', root .. 'tlu:' .. user_key, owner)
redis.call('ZREM', root .. 'tlp', owner)
return memories
