-- Moves the cursor of a session's journal in the same step that writes the memories made from it.
-- NEEDS: root, fence
local clock = require("storage/clock")
local journal = fence and root .. 'j:' .. fence.sid
-- True if another worker moved the cursor, or the session was deleted and created again.
local function has_moved()
  if not fence then return false end
  local cursor_fields = redis.call('HMGET', journal, 'ep', fence.cursor)
  return cursor_fields[1] ~= fence.epoch or tonumber(cursor_fields[2] or '-1') ~= fence.start
end
-- Removes stored and refused memories from the journal. Returns the stored ids, and the refused ids with their reasons.
-- Memories that changed in the meantime stay in the journal.
local function take_out(own)
  local stored, refused = {}, {}
  local function take(id, json) return redis.call('HGET', own, id) == json and redis.call('HDEL', own, id) end
  for i = 1, #fence.own, 2 do
    if take(fence.own[i], fence.own[i + 1]) then stored[#stored + 1] = fence.own[i] end
  end
  for i = 1, #fence.refused, 3 do
    if take(fence.refused[i], fence.refused[i + 1]) then refused[fence.refused[i]] = fence.refused[i + 2] end
  end
  return stored, refused
end
-- Writes into the session when its memories were promoted (`pm`), and why some were refused (`pr`).
local function show(meta, stored, refused)
  if fence.cursor == 'jp' then redis.call('HSET', meta, 'pt', clock.us_text()) end
  if #stored > 0 then
    local promoted = cjson.decode(redis.call('HGET', meta, 'pm') or '{}')
    for _, id in ipairs(stored) do promoted[id] = fence.at end
    redis.call('HSET', meta, 'pm', cjson.encode(promoted))
  end
  if next(refused) then
    local reasons_by_id = cjson.decode(redis.call('HGET', meta, 'pr') or '{}')
    for id, reason in pairs(refused) do reasons_by_id[id] = reason end
    redis.call('HSET', meta, 'pr', cjson.encode(reasons_by_id))
  end
end
local function advance()
  if not fence then return end
  local meta, list, own = root .. 'w:' .. fence.sid, journal .. ':l', journal .. ':o'
  local to = string.format('%.0f', fence.to)
  redis.call('HSET', journal, fence.cursor, to)
  if fence.both then redis.call('HSET', journal, 'je', to) end
  if fence.cursor == 'je' then redis.call('HDEL', journal, 'x0', 'xt') end
  if fence.fields then redis.call('HSET', journal, unpack(fence.fields)) end
  if fence.grows and #fence.grows > 0 then redis.call('HINCRBY', journal, fence.grows[1], fence.grows[2]) end
  local cursors = redis.call('HMGET', journal, 'sq', 'jb', 'jp', 'je')
  local newest, list_start, promoted, extracted = unpack(cursors, 1, 4)
  local worked_off = math.min(tonumber(promoted), tonumber(extracted))
  local first_kept = worked_off - fence.keep
  local stored, refused = take_out(own)
  local idle = worked_off >= tonumber(newest) and redis.call('EXISTS', own) == 0
  -- The journal of a deleted session stays until its work is settled, because that work needs the owner.
  if first_kept > tonumber(list_start) then
    redis.call('LTRIM', list, first_kept - tonumber(list_start), -1)
    redis.call('HSET', journal, 'jb', string.format('%.0f', first_kept))
  end
  if redis.call('EXISTS', meta) == 0 then return end
  local ttl = redis.call('TTL', meta)
  if ttl > 0 and idle then
    redis.call('EXPIRE', journal, ttl + 60)
    redis.call('EXPIRE', list, ttl + 60)
  end
  show(meta, stored, refused)
end
return {has_moved = has_moved, advance = advance}
