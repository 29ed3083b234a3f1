#!lua
-- Picks up to `limit` names, each with the first of `fields` that its document lacks. Names whose documents lack nothing
-- are done.
-- KEYS: todo
-- ARGV: root, limit: number, fields...
-- -> {name, field ("" if it is done)}…
local documents = require("memories/documents")
local picked = {}
for _, name in ipairs(redis.call('SRANDMEMBER', todo, limit)) do
  local key = documents.vector_key(name)
  if redis.call('EXISTS', key) == 0 then key = documents.history_key(name) end
  local lacking = ''
  -- Without a document, the indexing of the memory is due, and notes it again.
  if redis.call('EXISTS', key) == 1 then
    for i = #ARGV, fields_at, -1 do
      if redis.call('HEXISTS', key, ARGV[i]) == 0 then lacking = ARGV[i] end
    end
  end
  if lacking == '' then redis.call('SREM', todo, name) end
  picked[#picked + 1] = {name, lacking}
end
return picked
