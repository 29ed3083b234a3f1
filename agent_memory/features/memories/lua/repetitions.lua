-- Updates the fields that describe a memory's repeats: sessions (`s`, `es`), count (`ts`), last time (`ls`).
-- All of them follow from the record and its evidence.
-- NEEDS: root
local documents = require("memories/documents")
local follow_marks = require("memories/follow_marks")
local instants = require("memories/instants")
local session_tags = require("memories/session_tags")
local vector_tags = require("memories/vector_tags")
-- This many of the latest pieces of evidence stay single. Older ones of a session join into one with several `times`.
local KEPT = 50
-- The most messages that a piece of evidence can name.
local MOST_NAMED = 1000
local function is_reply(source) return source == 'assistant' or source == 'tool' end
-- Returns all pieces, and the single ones, in the order of their times if there are too many.
local function read(mid)
  local flat, pieces, alone = redis.call('HGETALL', root .. 'ev:' .. mid), {}, {}
  for i = 1, #flat, 2 do
    local piece = cjson.decode(flat[i + 1])
    piece = {field = flat[i], value = piece, at = instants.seconds_of(piece.at)}
    pieces[#pieces + 1] = piece
    if not piece.value.times then alone[#alone + 1] = piece end
  end
  if #alone > KEPT then
    table.sort(alone, function(a, b)
      local first, second = a.at or 0, b.at or 0
      return first < second or first == second and a.field < b.field
    end)
  end
  return pieces, alone
end
local function name_of_rest(value)
  return 'r' .. (is_reply(value.source) and 'o' or 'u') .. session_tags.tag(type(value.session_id) == 'string' and value.session_id or '')
end
local function add_to_rest(rest, piece)
  local value, ids = rest.value, rest.value.message_ids or {}
  for _, id in ipairs(piece.value.message_ids or {}) do ids[#ids + 1] = id end
  while #ids > MOST_NAMED do table.remove(ids, 1) end
  if #ids > 0 then value.message_ids = ids end
  value.times = value.times + 1
  if (piece.at or 0) >= (rest.at or 0) then value.at, rest.at = piece.value.at, piece.at end
end
-- Joins the earliest of too many single pieces. The first piece stays if it is older than the memory itself (`made`):
-- it is the first time.
local function join_earliest(mid, pieces, alone, made)
  local first = (alone[1].at or made) < made and 2 or 1
  local last = #alone - KEPT
  if first > last then return pieces end
  local rests, joined, changed = {}, {}, {}
  for _, piece in ipairs(pieces) do
    if piece.value.times then rests[piece.field] = piece end
  end
  for i = first, last do
    local piece = alone[i]
    local name = name_of_rest(piece.value)
    local value = piece.value
    rests[name] = rests[name] or {field = name, value = {session_id = value.session_id, role = value.role, source = value.source, times = 0}}
    add_to_rest(rests[name], piece)
    joined[piece.field], changed[name] = true, rests[name]
    redis.call('HDEL', root .. 'ev:' .. mid, piece.field)
  end
  local left = {}
  for _, piece in ipairs(pieces) do
    if not joined[piece.field] and not changed[piece.field] then left[#left + 1] = piece end
  end
  for name, piece in pairs(changed) do
    redis.call('HSET', root .. 'ev:' .. mid, name, cjson.encode(piece.value))
    left[#left + 1] = piece
  end
  return left
end
-- True if a piece names a message that no earlier piece named, or no message, as a program's statement does.
local function is_new(visited, value)
  local ids, new = value.message_ids or {}, false
  for _, id in ipairs(ids) do
    local name = tostring(value.session_id) .. '\0' .. tostring(id)
    new = new or not visited[name]
    visited[name] = true
  end
  return new or #ids == 0
end
-- Returns how often and when last a memory was said. An assistant does not repeat a user's statement, nor a user an
-- assistant's. An edit (at `edited`) starts the count again.
local function count(record, made, edited, pieces)
  local own = record.evidence or {{session_id = record.session_id, message_ids = record.extracted_from}}
  local visited, times, last = {}, 0, math.max(made, edited or made)
  for _, value in ipairs(own) do
    if is_new(visited, value) then times = times + 1 end
    last = math.max(last, instants.seconds_of(value.at) or last)
  end
  if edited then times = 1 end
  local is_turn = record.memory_type == 'message' and #(record.extracted_from or {}) > 0
  for _, piece in ipairs(pieces) do
    local same_speaker = is_turn or is_reply(piece.value.source) == is_reply(record.source_class)
    local of_these_words = not edited or (piece.at or edited) > edited
    if is_new(visited, piece.value) and same_speaker and of_these_words then
      times = times + (piece.value.times or 1)
      last = math.max(last, piece.at or last)
    end
  end
  return math.max(times, 1), last
end
local function sessions_of(pieces, own)
  local visited, sessions = {}, {}
  for _, piece in ipairs(pieces) do
    local session = piece.value.session_id
    local name = type(session) == 'string' and session ~= '' and session_tags.tag(session)
    if name and name ~= own and not visited[name] then
      visited[name] = true
      sessions[#sessions + 1] = name
    end
  end
  table.sort(sessions)
  return table.concat(sessions, ',')
end
-- Writes the fields that differ in as few commands as possible, because each one indexes the memory again.
local function write(mid, key, stored, new)
  local set, unset = {}, {}
  for _, name in ipairs({'s', 'es', 'ls', 'ts'}) do
    local value = new[name]
    if value and value ~= stored[name] then set[#set + 1], set[#set + 2] = name, value end
    if not value and stored[name] then unset[#unset + 1] = name end
  end
  if #set > 0 then redis.call('HSET', key, unpack(set)) end
  if #unset > 0 then redis.call('HDEL', key, unpack(unset)) end
  if key == documents.memory_key(mid) and (new.s ~= stored.s or new.ls ~= stored.ls) then vector_tags.copy(mid) end
end
-- Updates the fields after a change of a memory or its evidence.
local function refresh(mid)
  local key = documents.key_of(mid)
  if not key then return end
  follow_marks.mark(mid)
  local s, es, ls, ts, c, ed, j = unpack(redis.call('HMGET', key, 's', 'es', 'ls', 'ts', 'c', 'ed', 'j'), 1, 7)
  local pieces, alone = read(mid)
  if #pieces == 0 and not (es or ls or ts or ed or string.find(j, '"evidence":[', 1, true)) then return end
  local made = tonumber(c)
  if #alone > KEPT then pieces = join_earliest(mid, pieces, alone, made) end
  local own, of_evidence = session_tags.own_session(s, es), nil
  of_evidence = sessions_of(pieces, own)
  local times, last = count(cjson.decode(j), made, ed and tonumber(ed), pieces)
  local new = {ts = times > 1 and string.format('%d', times) or nil, ls = last > made and string.format('%.6f', last) or nil, s = own or nil}
  if of_evidence ~= '' then new.es, new.s = of_evidence, own and own .. ',' .. of_evidence or of_evidence end
  write(mid, key, {s = s or nil, es = es or nil, ls = ls or nil, ts = ts or nil}, new)
end
return {refresh = refresh}
