-- Edits a block's text. Positions count bytes from 0; sizes count UTF-8 characters.
local function chars(text)
  return select(2, string.gsub(text, '[^\128-\191]', ''))
end
local function splice(text, position, removed, inserted)
  return string.sub(text, 1, position) .. inserted .. string.sub(text, position + #removed + 1)
end
-- Return how often `part` occurs (0, 1, or 2 for twice or more), and the position of the first occurrence.
local function occurrences(text, part)
  local first = string.find(text, part, 1, true)
  if not first then return 0, nil end
  return string.find(text, part, first + 1, true) and 2 or 1, first - 1
end
-- Return the position at which a line (from 1) begins, or nil if the text has fewer lines.
local function line_start(text, line)
  local start = 0
  for _ = 2, line do
    local stop = string.find(text, '\n', start + 1, true)
    if not stop then return nil end
    start = stop
  end
  return start < #text and start or nil
end
return {chars = chars, splice = splice, occurrences = occurrences, line_start = line_start}
