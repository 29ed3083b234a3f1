#!lua flags=allow-oom
-- Notes the memories and versions that have vectors of other models only. With `drop`, deletes the other vectors of all
-- other documents. If the model refuses the text of a document, no vector is left: memories are then due for embedding
-- like new ones.
--   model   the digest of the model, for documents that name their models (`em`)
-- KEYS: todo, refused, due, documents...
-- ARGV: root, field, model, drop: flag
-- -> how many documents have vectors of other models only
local clock = require("storage/clock")
local documents = require("memories/documents")
local outbox = require("storage/outbox")
local lacking = 0
for i = documents_at, #KEYS do
  local key, others, has, models = KEYS[i], {}, false, nil
  for _, name in ipairs(redis.call('HKEYS', key)) do
    has = has or name == field
    if name == 'em' then models = redis.call('HGET', key, name) end
    if string.sub(name, 1, 2) == 'v_' and name ~= field then others[#others + 1] = name end
  end
  local name = string.match(key, '[^:]*$')
  local mid = string.match(name, '^[^.]*')
  local is_version = key == documents.history_key(name)
  local is_refused = not has
  if models then
    is_refused = is_refused and string.find(models, model, 1, true)
  else
    is_refused = is_refused and redis.call('SISMEMBER', refused, is_version and name or mid) == 1
  end
  if #others > 0 and not has and not is_refused then
    lacking = lacking + 1
    if models then redis.call('HSET', key, 'em', '0') else redis.call('SADD', todo, name) end
  elseif #others > 0 and drop then
    redis.call('HDEL', key, unpack(others))
    if models then
      redis.call('HSET', key, 'em', has and model or '0')
    elseif is_refused and not is_version then
      redis.call('DEL', key)
      outbox.mark_due(due, clock.ms, mid)
    end
  end
end
return lacking
