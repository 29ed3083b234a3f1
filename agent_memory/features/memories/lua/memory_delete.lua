#!lua flags=allow-oom
-- Permanently deletes memories, with versions, evidence, aliases and changes. `memories` has for each memory its mid,
-- version or "", order key or "", and a line "order-key mid" for each message that is its evidence.
-- KEYS: due, tries, reasons, dead
-- ARGV: root, reach: number, memories...
-- -> per memory 1 deleted, 0 not there or changed
local documents = require("memories/documents")
local follow_marks = require("memories/follow_marks")
local deletion = require("memories/deletion")
local aliases = require("memories/aliases")
local message_order = require("memories/message_order")
local deleted = {}
for i = memories_at, #ARGV, 4 do
  local mid, version, own_order, positions = unpack(ARGV, i, i + 3)
  local key, was_there = documents.key_of(mid), 0
  if version == '' or (key and redis.call('HGET', key, 'n') == version) then
    was_there = key and 1 or 0
    if own_order ~= '' then message_order.remove(own_order, mid) end
    for order, message in string.gmatch(positions, '([^\n]+) (%x+)') do
      -- A message that is a separate memory, and that this memory merely cites, keeps its position.
      if aliases.target_of(message) == mid then message_order.remove(order, message) end
    end
    deletion.delete(mid)
  end
  deleted[#deleted + 1] = was_there
end
follow_marks.write()
return deleted
