#!lua
-- Moves memories whose end has passed to the history, where default reads do not look.
-- KEYS: due, tries, reasons, dead
-- ARGV: root, mids...
-- -> how many moved
local documents = require("memories/documents")
local follow_marks = require("memories/follow_marks")
local history = require("memories/history")
local moved = 0
for i = mids_at, #ARGV do
  if history.is_over(documents.memory_key(ARGV[i])) then
    history.close(ARGV[i])
    moved = moved + 1
  end
end
follow_marks.write()
return moved
