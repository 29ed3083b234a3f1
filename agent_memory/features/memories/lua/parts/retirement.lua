-- Retires a memory: it is no longer current.
-- NEEDS: root, due, tries, reasons, dead, reach
local outbox = require("storage/outbox")
local documents = require("memories/documents")
local standings = require("memories/standings")
local history = require("memories/history")
local message_order = require("memories/message_order")
-- Moves the last version to the history and removes the memory from `order` (if given); returns that version.
local function retire(mid, order)
  local version, standing = history.archive(mid, documents.key_of(mid), order)
  standings.unlink(mid, standing)
  redis.call('DEL', documents.memory_key(mid), documents.history_key(mid), unpack(documents.vector_keys(mid)))
  if order then message_order.remove(order, mid) end
  outbox.clear_mark(mid, due, tries, reasons, dead)
  return version
end
return {retire = retire}
