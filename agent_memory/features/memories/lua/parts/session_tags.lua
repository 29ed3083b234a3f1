-- A search finds a memory in its own session and in each session where it was said. `s` names all of these sessions,
-- `es` the sessions of its evidence.
local function own_session(sessions, of_evidence)
  if not sessions or not of_evidence then return sessions end
  if sessions == of_evidence then return nil end
  return string.sub(sessions, 1, #sessions - #of_evidence - 1)
end
local function tag(text)
  return (string.gsub(text, '.', function(byte) return string.format('%02x', string.byte(byte)) end))
end
return {own_session = own_session, tag = tag}
