-- Edits of a block's text. Positions are bytes from 0; characters are those of UTF-8.
local function chars(text)
  return select(2, string.gsub(text, '[^\128-\191]', ''))
end
local function splice(text, position, removed, inserted)
  return string.sub(text, 1, position) .. inserted .. string.sub(text, position + #removed + 1)
end
-- Return how often a part occurs (2: twice or more), and where first.
local function occurrences(text, part)
  local first = string.find(text, part, 1, true)
  if not first then return 0, nil end
  return string.find(text, part, first + 1, true) and 2 or 1, first - 1
end
-- Return where a line (from 1) begins; nil after the last.
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
