#!lua flags=allow-oom
-- Notes the memories and versions that have vectors of other models only. With `drop`, deletes the other vectors of all
-- other documents: no document loses its only vector.
--   model   the digest of the model, for documents that name their models (`em`)
-- KEYS: todo, documents...
-- ARGV: field, model, drop: flag
-- -> how many documents have vectors of other models only
local lacking = 0
for i = documents_at, #KEYS do
  local key, others, has, names_models = KEYS[i], {}, false, false
  for _, name in ipairs(redis.call('HKEYS', key)) do
    has = has or name == field
    names_models = names_models or name == 'em'
    if string.sub(name, 1, 2) == 'v_' and name ~= field then others[#others + 1] = name end
  end
  if #others > 0 and not has then
    lacking = lacking + 1
    if names_models then redis.call('HSET', key, 'em', '0') else redis.call('SADD', todo, string.match(key, '[^:]*$')) end
  elseif #others > 0 and drop then
    redis.call('HDEL', key, unpack(others))
    if names_models then redis.call('HSET', key, 'em', model) end
  end
end
return lacking
