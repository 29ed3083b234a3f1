-- A memory is found in its own session and in those where it was said, too: `s` names all of them, `es` those of its evidence.
-- NEEDS: root
local documents = require("memories/documents")
local vector_tags = require("memories/vector_tags")
local function own_session(sessions, of_evidence)
  if not sessions or not of_evidence then return sessions end
  if sessions == of_evidence then return nil end
  return string.sub(sessions, 1, #sessions - #of_evidence - 1)
end
local function tag(text)
  return (string.gsub(text, '.', function(byte) return string.format('%02x', string.byte(byte)) end))
end
-- After a change of its evidence.
local function refresh(mid)
  local key = documents.key_of(mid)
  if not key then return end
  local known = redis.call('HMGET', key, 's', 'es')
  local own, seen, sessions = own_session(known[1], known[2]), {}, {}
  for _, json in ipairs(redis.call('HVALS', root .. 'ev:' .. mid)) do
    local session = cjson.decode(json).session_id
    if type(session) == 'string' and session ~= '' then
      local name = tag(session)
      if name ~= own and not seen[name] then
        seen[name] = true
        sessions[#sessions + 1] = name
      end
    end
  end
  table.sort(sessions)
  local of_evidence = table.concat(sessions, ',')
  if of_evidence == (known[2] or '') then return end
  if of_evidence == '' then
    redis.call('HDEL', key, 'es')
    if own then redis.call('HSET', key, 's', own) else redis.call('HDEL', key, 's') end
  else
    redis.call('HSET', key, 'es', of_evidence, 's', own and own .. ',' .. of_evidence or of_evidence)
  end
  if key == documents.memory_key(mid) then vector_tags.copy(key, documents.vector_key(mid)) end
end
return {own_session = own_session, refresh = refresh}
