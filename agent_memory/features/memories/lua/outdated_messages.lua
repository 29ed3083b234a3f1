-- Marks the messages that a superseded fact rests on: `nt` of a message is the time and the fact's mid. `om` of the
-- fact lists its messages, for undo.
-- NEEDS: root
local documents = require("memories/documents")
local follow_marks = require("memories/follow_marks")
local aliases = require("memories/aliases")
local MESSAGE = '6d657373616765' -- the tag of that type
-- Calls `visit(key)` for the memory of each message. An alias resolves to its memory.
local function each(messages, visit)
  for message in string.gmatch(messages or '', '%x+') do
    local key = documents.memory_key(aliases.target_of(message) or message)
    if redis.call('HGET', key, 'ty') == MESSAGE then
      follow_marks.mark(string.match(key, '%x+$'))
      visit(key)
    end
  end
end
local function mark(mid, messages, seconds)
  each(messages, function(key) redis.call('HSET', key, 'nt', seconds .. ' ' .. mid) end)
end
local function unmark(mid, messages)
  each(messages, function(key)
    if string.match(redis.call('HGET', key, 'nt') or '', ' (%x+)$') == mid then redis.call('HDEL', key, 'nt') end
  end)
end
return {mark = mark, unmark = unmark}
