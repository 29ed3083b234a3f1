-- Merges repeats into one memory: a statement and a message, or two messages. A message that became an alias keeps
-- its position in its session. It is evidence in `ev:` under `m<mid>`, from which it can become a memory again.
-- NEEDS: root
local documents = require("memories/documents")
local standings = require("memories/standings")
local repetitions = require("memories/repetitions")
local aliases = require("memories/aliases")
local retirement = require("memories/retirement")
-- Reads in few calls what a put depends on: the memory's key and alias, and the memories with its kin, slot and words.
local function look_up(step)
  step.holders, step.kin, step.slot_name, step.words, step.restatement = standings.parse(step.standing)
  step.key = documents.key_of(step.mid)
  step.alias_of, step.alias_digest = aliases.target_of(step.mid)
  local words_digest = step.words_digest or ''
  local mids = redis.call('HMGET', step.holders, step.kin, step.slot_name, step.words, 'u' .. words_digest, 'o' .. words_digest)
  step.kin_holder, step.slot_holder, step.words_holder, step.user_message, step.other_message = unpack(mids, 1, 5)
end
-- Returns `holder` if it is another existing memory that is not in the step's `except`; else nil.
local function conflicting(step, holder)
  if not holder or holder == step.mid or not documents.key_of(holder) then return nil end
  for _, mid in ipairs(step.except or {}) do
    if mid == holder then return nil end
  end
  return holder
end
-- Returns the memory that already says what a message says: a statement, with true if it has no position in a session,
-- or a message of the same role. Memories with an end do not count.
local function said_before(step)
  local message = step.message
  local names = {message.statement_field, message.field, step.restatement ~= '' and step.restatement or nil}
  local holders = redis.call('HMGET', step.holders, unpack(names))
  for i, name in ipairs(names) do
    local holder = holders[i]
    local stored = holder and holder ~= step.mid and redis.call('HMGET', documents.memory_key(holder), 'j', 'z', 'c')
    if stored and stored[1] and not stored[2] then
      local record = cjson.decode(stored[1])
      if name == message.statement_field then
        return holder, not (record.memory_type == 'message' and type(record.session_id) == 'string')
      end
      local said_at = tonumber(stored[3])
      local same_time = not message.same_from or (message.same_from <= said_at and said_at < message.same_until)
      local speaker = record.metadata or {}
      if same_time and tostring(speaker.role) == message.role and speaker.name == message.name then return holder end
    end
  end
  return nil
end
-- The test of `normalization.is_plain`, but here a message with `about_user` is not plain.
local function is_plain(record)
  for _, name in ipairs({'event_date', 'valid_from', 'valid_to', 'expires_at', 'slot'}) do
    if record[name] and record[name] ~= cjson.null then return false end
  end
  for _, name in ipairs({'topics', 'entities'}) do
    if type(record[name]) == 'table' and #record[name] > 0 then return false end
  end
  for name in pairs(record.metadata or {}) do
    if name ~= 'role' and name ~= 'name' and name ~= 'question' then return false end
  end
  return record.pinned ~= true
end
local function absorb_message(step, message_mid, source, record, digest)
  local role = (record.metadata or {}).role
  local piece = {session_id = record.session_id, message_ids = record.extracted_from, role = role, at = record.created_at, source = source}
  if #record.text <= 4000 then piece.quote = record.text end
  redis.call('HSETNX', root .. 'ev:' .. step.mid, 'm' .. message_mid, cjson.encode(piece))
  -- The message's evidence and aliases become the statement's.
  aliases.move_all(message_mid, step.mid)
  local evidence = redis.call('HGETALL', root .. 'ev:' .. message_mid)
  for i = 1, #evidence, 2 do redis.call('HSETNX', root .. 'ev:' .. step.mid, evidence[i], evidence[i + 1]) end
  redis.call('DEL', root .. 'ev:' .. message_mid)
  retirement.retire(message_mid)
  aliases.set(message_mid, step.mid, digest)
  if not step.order and type(record.session_id) == 'string' then
    redis.call('HSETNX', documents.memory_key(step.mid), 'pl', message_mid .. ' ' .. record.session_id)
  end
  repetitions.refresh(step.mid)
end
-- Makes messages with a new statement's words its evidence and aliases. They keep their positions in their sessions;
-- the first one's position becomes the statement's, too.
local function absorb(step)
  if not step.holders then
    local words_digest = step.words_digest
    step.user_message, step.other_message = unpack(redis.call('HMGET', root .. 'by:' .. step.scope, 'u' .. words_digest, 'o' .. words_digest), 1, 2)
  end
  if not step.user_message and not step.other_message then return end
  if redis.call('HEXISTS', documents.memory_key(step.mid), 'z') == 1 then return end
  for i, mid in ipairs({step.user_message, step.other_message}) do
    local stored = mid and mid ~= step.mid and redis.call('HMGET', documents.memory_key(mid), 'j', 'h', 'z')
    local record = stored and stored[1] and not stored[3] and cjson.decode(stored[1])
    if record and is_plain(record) then absorb_message(step, mid, i == 1 and 'user' or 'assistant', record, stored[2]) end
  end
end
return {look_up = look_up, conflicting = conflicting, said_before = said_before, absorb = absorb}
