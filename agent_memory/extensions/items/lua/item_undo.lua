#!lua flags=allow-oom
-- Deletes an owner's items that an import stored, unless a later request replaced them. With `dry`, only counts them.
-- KEYS: items, expiries, paths, owners
-- ARGV: root, owner, imported, dry: flag, members...
-- -> their number
local entries = require("items/entries")
local count = 0
for i = members_at, #ARGV do
  if redis.call('HGET', root .. 'it:' .. string.sub(ARGV[i], -32), 'im') == imported then
    count = count + 1
    if not dry then entries.remove(ARGV[i]) end
  end
end
return count
