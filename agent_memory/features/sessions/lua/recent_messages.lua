#!lua flags=no-writes
-- Returns a user's newest unpromoted messages within limits, from the last written session on. Reads entries one by
-- one, because their size is unknown; an entry above the rest of `most_bytes` ends its session. With `namespaces`,
-- reads only sessions in these.
-- KEYS: user_waiting
-- ARGV: journal_prefix, excluded_sid, looked_at: number, most_sessions: number, most_each: number, most: number, most_bytes: number, namespaces...
-- -> {tenant, session, namespace or "", user, has namespace 1/0, entries (newest first)…}…
local answer = {}
local namespace_set = #ARGV >= namespaces_at and {}
for i = namespaces_at, #ARGV do namespace_set[ARGV[i]] = true end
for _, sid in ipairs(redis.call('ZREVRANGE', user_waiting, 0, looked_at - 1)) do
  if most <= 0 or #answer >= most_sessions then break end
  local journal = journal_prefix .. sid
  local fields = sid ~= excluded_sid and redis.call('HMGET', journal, 'tn', 'sid', 'ns', 'us', 'jp', 'sq') or {}
  local tenant, session, namespace, user, promoted, newest = unpack(fields, 1, 6)
  if tenant and tonumber(promoted) < tonumber(newest) and (not namespace_set or (namespace and namespace_set[namespace])) then
    local row = {tenant, session, namespace or '', user or '', namespace and 1 or 0}
    for i = 1, math.min(tonumber(newest) - tonumber(promoted), most_each, most) do
      local entry = redis.call('LINDEX', journal .. ':l', -i)
      if not entry or #entry > most_bytes then break end
      most_bytes, most = most_bytes - #entry, most - 1
      row[#row + 1] = entry
    end
    answer[#answer + 1] = row
  end
end
return answer
