-- `by:<scope>` maps words and slots to current memories. A standing is "<scope> <kin> <slot> <words> <restatement>".
-- NEEDS: root
local function parse(standing)
  local scope, kin, slot, words, restatement = string.match(standing, '^(%S+) (%S*) (%S*) ?(%S*) ?(%S*)$')
  return root .. 'by:' .. scope, kin, slot, words, restatement
end
local function link(mid, standing)
  if not standing then return end
  local holders, kin, slot, words, restatement = parse(standing)
  if kin ~= '' then redis.call('HSETNX', holders, kin, mid) end
  if slot ~= '' then redis.call('HSET', holders, slot, mid) end
  -- Of statements with the same words, the first one keeps them; of messages, the last one has them.
  if words ~= '' then redis.call(kin ~= '' and 'HSETNX' or 'HSET', holders, words, mid) end
  if restatement ~= '' then redis.call('HSET', holders, restatement, mid) end
end
local function unlink(mid, standing)
  if not standing then return end
  local holders, kin, slot, words, restatement = parse(standing)
  for _, name in ipairs({kin, slot, words, restatement}) do
    if name ~= '' and redis.call('HGET', holders, name) == mid then redis.call('HDEL', holders, name) end
  end
end
return {parse = parse, link = link, unlink = unlink}
