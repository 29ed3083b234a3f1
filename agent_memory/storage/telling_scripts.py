"""The Lua that makes one memory of what is said twice: of a message and a statement in its words, and of two messages. For MEMORY_COMMIT.

A message that is another name of a memory keeps its place among those of its session, so that its neighbours are found by its words, and
is remembered in `ev:` as evidence under `m<mid>`, from which it can become a memory again when the session of the other one is deleted.
"""

from __future__ import annotations

SAID_BEFORE = """
-- What must be known of a memory that is put, in as few calls as can be: where it is, of what its id is another name, and who has its kin,
-- its slot, its words, and (of a statement) the words of what persons and others said.
local function look(s)
  s.sc, s.kin, s.held, s.words = string.match(s.bk, '^(%S+) (%S*) (%S*) ?(%S*)$')
  s.home, s.told = home(s.mid), redis.call('GET', R .. 'al:' .. s.mid)
  local said = s.said or ''
  s.by = redis.call('HMGET', R .. 'by:' .. s.sc, s.kin, s.held, s.words, 'u' .. said, 'o' .. said)
end
local function taken(s, other)
  if not other or other == s.mid or not home(other) then return nil end
  for _, mid in ipairs(s.among or {}) do
    if mid == other then return nil end
  end
  return other
end
-- What says already what a message says: a statement (and whether it has no place in a session), or a message of the same role. What ends
-- some day does not stand for it.
local function said_before(s)
  for _, name in ipairs({s.turn.w, s.turn.field}) do
    local other = redis.call('HGET', R .. 'by:' .. s.sc, name)
    local at = other and other ~= s.mid and redis.call('HMGET', mk(other), 'j', 'z', 'c')
    if at and at[1] and not at[2] then
      local r = cjson.decode(at[1])
      if name == s.turn.w then return other, not (r.memory_type == 'message' and type(r.session_id) == 'string') end
      local same = not s.turn.dated or math.floor(tonumber(at[3]) / 86400) == s.turn.day
      if same and tostring((r.metadata or {}).role) == s.turn.role then return other end
    end
  end
  return nil
end
"""

# Expects `alias` and `unalias`.
ABSORB = """
-- As `sameness.is_plain`.
local function plain(r)
  for _, name in ipairs({'event_date', 'valid_from', 'valid_to', 'expires_at', 'slot'}) do
    if r[name] and r[name] ~= cjson.null then return false end
  end
  for _, name in ipairs({'topics', 'entities'}) do
    if type(r[name]) == 'table' and #r[name] > 0 then return false end
  end
  for name in pairs(r.metadata or {}) do
    if name ~= 'role' then return false end
  end
  return r.pinned ~= true
end
-- A new statement in the words of messages: they become its evidence and their ids names of it. They keep their places in their sessions,
-- for those around them; the first one's is the statement's, too, which is found by what was said around it.
local function absorb(s)
  if not s.by then s.by = redis.call('HMGET', R .. 'by:' .. s.sc, '', '', '', 'u' .. s.said, 'o' .. s.said) end
  if not s.by[4] and not s.by[5] or redis.call('HEXISTS', mk(s.mid), 'z') == 1 then return end
  for i, turn in ipairs({s.by[4], s.by[5]}) do
    local at = turn and turn ~= s.mid and redis.call('HMGET', mk(turn), 'j', 'h', 'z')
    local r = at and at[1] and not at[3] and cjson.decode(at[1])
    if r and plain(r) then
      local piece = {session_id = r.session_id, message_ids = r.extracted_from, role = (r.metadata or {}).role, at = r.created_at}
      if #r.text <= 4000 then piece.quote = r.text end
      piece.source = i == 1 and 'user' or 'assistant'
      redis.call('HSETNX', R .. 'ev:' .. s.mid, 'm' .. turn, cjson.encode(piece))
      -- What came as evidence of the message is evidence of the statement.
      for _, member in ipairs(redis.call('ZRANGE', R .. 'mh:' .. turn, 0, -1)) do
        if string.sub(member, 1, 1) == 'a' then
          local other = string.sub(member, 2)
          local dig = string.match(redis.call('GET', R .. 'al:' .. other) or '', ' (.*)$')
          unalias(other)
          alias(other, s.mid, dig)
        end
      end
      local evidence = redis.call('HGETALL', R .. 'ev:' .. turn)
      for i = 1, #evidence, 2 do redis.call('HSETNX', R .. 'ev:' .. s.mid, evidence[i], evidence[i + 1]) end
      redis.call('DEL', R .. 'ev:' .. turn)
      retire(turn)
      alias(turn, s.mid, at[2])
      if not s.order and type(r.session_id) == 'string' then redis.call('HSETNX', mk(s.mid), 'pl', turn .. ' ' .. r.session_id) end
      retag(s.mid)
    end
  end
end
"""
