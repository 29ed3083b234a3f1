#!lua
-- Puts and deletes items of one owner, all or none. A replaced item keeps its creation time and loses its vector. The
-- fence (`n`) identifies the new value.
--   changes     10 values each: entry, "put" or "delete", TTL (ms, or ""), value, path, key, index, tags of its path
--               prefixes, terms, "1" to embed the item
--   created_at, updated_at, ends_at   times of an imported item (ms); `imported` is the tag of its import
-- KEYS: items, expiries, paths, owners, due, wake
-- ARGV: root, tenant, owner, about, created_at?, updated_at?, ends_at: number?, imported?, guard: json, changes...
local clock = require("storage/clock")
local outbox = require("storage/outbox")
local entries = require("items/entries")
local item_expiry = require("items/item_expiry")
local erasures = require("storage/erasures")
erasures.refuse(guard)
entries.remove_ended()
local now = string.format('%.0f', clock.ms)
local marked = false
for i = changes_at, #ARGV, 10 do
  local member, ttl = ARGV[i], ARGV[i + 2]
  local name = string.sub(member, -32)
  local key = root .. 'it:' .. name
  if ARGV[i + 1] == 'delete' then
    entries.remove(member)
  else
    local created = created_at or redis.call('HGET', key, 'ca') or now
    if redis.call('ZADD', items, 0, member) == 1 then
      created = created_at or now
      redis.call('HINCRBY', paths, string.match(member, '^[^!]*'), 1)
      redis.call('HSET', owners, owner, about)
    end
    redis.call('UNLINK', key)
    redis.call('ZREM', expiries, member)
    redis.call('HSET', key, 't', tenant, 'ow', about, 'n', clock.us_text(), 'v', ARGV[i + 3], 'pa', ARGV[i + 4], 'ky', ARGV[i + 5], 'ca', created,
      'ua', updated_at or now, 'ix', ARGV[i + 6], 'px', ARGV[i + 7], 'k', ARGV[i + 8], 'em', ARGV[i + 9] == '1' and '0' or 'x')
    if imported then redis.call('HSET', key, 'im', imported) end
    if ttl ~= '' then
      redis.call('HSET', key, 'tl', ttl)
      item_expiry.expire(member, tonumber(ttl), ends_at)
    end
    if ARGV[i + 9] == '1' then
      outbox.mark_due(due, now, name)
      marked = true
    end
  end
end
if marked then outbox.wake_dispatcher(wake) end
return 1
