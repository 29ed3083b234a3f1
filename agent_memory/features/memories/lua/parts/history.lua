-- Moves versions of memories from current to history. No version is overwritten: its name is the time (µs) of writing.
-- NEEDS: root, due, tries, reasons, dead
local clock = require("storage/clock")
local outbox = require("storage/outbox")
local documents = require("memories/documents")
local follow_marks = require("memories/follow_marks")
local standings = require("memories/standings")
local session_tags = require("memories/session_tags")
local next_version = clock.us
local function new_version()
  local version = string.format('%.0f', next_version)
  next_version = next_version + 1
  return version
end
-- Copies a current version to the history, with its position in `order`; returns its version and its standing.
local function archive(mid, key, order)
  follow_marks.mark(mid)
  local fields, vector = documents.read(mid, key)
  local name = mid .. '.' .. fields['n']
  fields['rt'] = clock.seconds_text()
  -- A former version keeps only its own session, not the other sessions where it was said.
  fields['s'], fields['es'] = session_tags.own_session(fields['s'], fields['es']), nil
  local score = order and redis.call('ZSCORE', order, mid)
  if score then fields['ok'], fields['os'] = order, score end
  redis.call('HSET', documents.history_key(name), unpack(documents.flatten(fields, vector)))
  redis.call('ZADD', root .. 'mh:' .. mid, fields['n'], fields['n'])
  documents.note_vector(name)
  if #vector == 0 then redis.call('SADD', root .. 'bare', name) end
  return fields['n'], fields['bk']
end
-- True if default reads must not find a memory, because its end has passed or it is in quarantine.
local function is_over(key)
  local fields = redis.call('HMGET', key, 'z', 'q')
  return fields[2] or fields[1] and tonumber(fields[1]) * 1000000 <= clock.us
end
-- Moves a current version that is over to the history, where default reads do not look.
local function close(mid)
  follow_marks.mark(mid)
  local fields, vector = documents.read(mid, documents.memory_key(mid))
  redis.call('HSET', documents.history_key(mid), unpack(documents.flatten(fields, vector)))
  documents.note_vector(mid)
  redis.call('DEL', documents.memory_key(mid), unpack(documents.vector_keys(mid)))
  standings.unlink(mid, fields['bk'])
  if #vector > 0 then outbox.clear_mark(mid, due, tries, reasons, dead) else outbox.mark_due(due, clock.ms, mid) end
end
return {new_version = new_version, archive = archive, is_over = is_over, close = close}
