#!lua
-- Changes a block's text by one splice, and its settings. `put` creates a missing block. Each change adds a version and
-- an entry of `changes`.
--   owner, identity     the owner's name in keys, and the owner as JSON
--   user_owners, agent_owners   keys of the owner's user and agent
--   operation           put (content?), append, replace (old_content), insert (line), rethink or undo (version?)
--   expected            the required version; "*" requires a block of any version, "absent" requires that there is none
--   tokens              size of `content`
--   counted             {version, tokens}: size of the whole text after this change to that version
--   settings            new values: d: description, lc: limit in characters, lt: in tokens (0: none), ro: read-only
--   bounds              blocks: most blocks per owner; changes: changes kept; chars: default limit in characters
-- KEYS: blocks, changes, user_owners?, agent_owners?
-- ARGV: label, owner, identity, operation, expected?, content?, old_content?, line: number?, version: number?, tokens: number
-- ARGV: settings: json, counted: json?, actor, bounds: json, guard: json
-- -> {"ok", block, change}, {"same", block} (nothing to change), {"missing"}, {"many"} (the owner has too many blocks),
--    {"version", block or ""} (not the `expected` one), {"read_only", block},
--    {"unknown", block} (`old_content` is not in the text), {"ambiguous", block} (it is there more than once),
--    {"gone", block} (the change to undo is not kept), {"overtaken", block} (a later change touched the same place),
--    {"full", block or "", chars, limit}, {"full_tokens", block or "", tokens, limit}
--    or {"count", version, text}: the caller counts the tokens of `text` and calls again with `counted`
local clock = require("storage/clock")
local texts = require("blocks/texts")
local owners = require("blocks/owners")
local erasures = require("storage/erasures")
erasures.refuse(guard)
local raw = redis.call('HGET', blocks, label)
local block = raw and cjson.decode(raw)
local put = operation == 'put'
if expected == 'absent' then
  if block then return {'version', raw} end
elseif expected and not (block and (expected == '*' or tonumber(expected) == block.v)) then
  return {'version', raw or ''}
end
local is_new = not block
local now = clock.us_text()
if is_new then
  if not put then return {'missing'} end
  if redis.call('HLEN', blocks) >= bounds.blocks then return {'many'} end
  block = {val = '', d = '', lc = bounds.chars, lt = 0, ro = false, v = 0, ca = now, tk = 0, base = '', to = {}}
elseif block.ro and not put then
  return {'read_only', raw}
end
local value = block.val
local change = {p = 0, old = '', new = '', before = {}, after = {}, op = operation, at = now, by = actor}

-- Return true if no change after version `undone` touched the text.
local function text_stands_since(undone)
  if undone == block.v then return true end
  for _, later in ipairs(redis.call('LRANGE', changes, undone - block.v, -1)) do
    later = cjson.decode(later)
    if later.old ~= later.new then return false end
  end
  return true
end

-- Prepare the undo. Return nil, or the reply if the undo is impossible.
local function undo()
  local undone = version or block.v
  local entry = undone >= 1 and undone <= block.v and redis.call('LINDEX', changes, undone - block.v - 1)
  if not entry then return {'gone', raw} end
  entry = cjson.decode(entry)
  if text_stands_since(undone) then
    change.p, change.old, change.new = entry.p, entry.new, entry.old
  elseif entry.new ~= '' then
    local count, first = texts.occurrences(value, entry.new)
    if count ~= 1 then return {'overtaken', raw} end
    change.p, change.old, change.new = first, entry.new, entry.old
  elseif entry.old ~= '' then
    return {'overtaken', raw}
  end
  for name, was in pairs(entry.before) do
    if block[name] ~= entry.after[name] then return {'overtaken', raw} end
    settings[name] = was
  end
  change.u = undone
  return nil
end

-- Find where the text changes. Return nil, or the reply if the change is impossible.
local function place()
  if operation == 'undo' then return undo() end
  if operation == 'replace' then
    local count, first = texts.occurrences(value, old_content)
    if count ~= 1 then return {count == 0 and 'unknown' or 'ambiguous', raw} end
    change.p, change.old, change.new = first, old_content, content
    return nil
  end
  local start = operation == 'insert' and texts.line_start(value, line)
  if start then
    change.p, change.new = start, content .. '\n'
  elseif operation == 'insert' or operation == 'append' then
    local joint = value ~= '' and string.sub(value, -1) ~= '\n' and '\n' or ''
    change.p, change.new = #value, joint .. content
  elseif content then
    change.old, change.new = value, content
  end
  return nil
end
local refused = place()
if refused then return refused end
local text = texts.splice(value, change.p, change.old, change.new)
for name, setting in pairs(settings) do
  if block[name] ~= setting then
    if not is_new then change.before[name], change.after[name] = block[name], setting end
    block[name] = setting
  end
end
if not is_new and text == value and next(change.after) == nil then return {'same', raw} end
local size, former = texts.chars(text), texts.chars(value)
-- A text above a limit is refused if it grows or the limit is new: a text that is already too long may shrink step by step.
if size > block.lc and (size > former or change.after.lc) then return {'full', raw or '', size, block.lc} end
local tokens_used = block.tk + tokens + 2
if (put or operation == 'rethink') and content then
  tokens_used = tokens
elseif counted and counted.version == block.v then
  tokens_used = counted.tokens
elseif block.lt > 0 and (tokens_used > block.lt or change.after.lt) then
  return {'count', tostring(block.v), text}
end
if block.lt > 0 and tokens_used > block.lt and (size > former or change.after.lt or operation == 'rethink') then
  return {'full_tokens', raw or '', tokens_used, block.lt}
end
change.c = texts.chars(string.sub(value, 1, change.p))
block.v, block.val, block.tk, block.ua = block.v + 1, text, tokens_used, now
change.v = block.v
block.im = nil
redis.call('RPUSH', changes, cjson.encode(change))
if redis.call('LLEN', changes) > bounds.changes then
  local oldest = cjson.decode(redis.call('LPOP', changes))
  block.base = texts.splice(block.base, oldest.p, oldest.old, oldest.new)
end
local encoded = cjson.encode(block)
redis.call('HSET', blocks, label, encoded)
owners.note(user_owners, agent_owners, owner, identity)
return {'ok', encoded, cjson.encode(change)}
