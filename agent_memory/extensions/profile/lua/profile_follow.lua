#!lua
-- Updates profiles with memories as a worker read them. Skips memories that changed after they were read.
--   items   list of {mid, state, owner, user_key, namespace, head, entry}:
--     state      as in `read_state.lua`: the fence
--     owner      nil if the memory belongs to no profile
--     namespace  as a tag, or ""
--     head       {g: groups, d: days, r: sort key within groups (nil: represents only its own), k: 1 if lasting,
--                l: last said (s), s: slot (may be nil), i: id}
--     entry      JSON
-- Keys of a profile:
--   base hash   heads (m<mid>), entries (e<mid>), lapsed entries (x<mid>), slot values (s<slot>: mids), and recurring groups
--               (u<group>: end, and the entry that represents it)
--   :g          lexical set of the days and members of each group
--   :s, :d      static entries by end; dynamic entries by last said
--   :l          slots by when their value was last said
--   :r          pages of static entries, dynamic entries and slots, as readers get them
-- KEYS: config
-- ARGV: root, items: json
-- -> for each item 1, or 0 if its memory changed and was skipped
local empty_profile_expiry = require("profile/empty_profile_expiry")
local profile_moves = require("profile/profile_moves")
local read_state = require("memories/read_state")
local static_rule = require("profile/static_rule")
local PAGE, PAGES, VALUES = 16, 4, 8
local owners, done = {}, {}
local function of(owner)
  if not owners[owner] then owners[owner] = {base = root .. 'pf:' .. owner, groups = {}, slots = {}, affected = {}, before = {}} end
  return owners[owner]
end
local function slot_group(slot) return '~' .. slot end
local function slot_rank(head) return string.format('%012.0f', 999999999999 - head.l) end
-- Call `visit` with each member that a head has in the lexical set `:g`.
local function each_name(profile, mid, head, visit)
  for _, group in ipairs(head.g) do
    profile.groups[group] = true
    for _, day in ipairs(head.d) do visit(group .. ' d' .. string.format('%06.0f', day) .. ' ' .. mid) end
    if head.r or string.sub(group, 1, 1) == '=' then visit(group .. ' r' .. (head.r or '') .. ' ' .. mid) end
  end
  if head.s then
    profile.slots[head.s] = true
    visit(slot_group(head.s) .. ' ' .. slot_rank(head) .. ' ' .. mid)
  end
end
local function note(profile, mid)
  if profile.affected[mid] then return end
  profile.affected[mid] = true
  local head = redis.call('HGET', profile.base, 'm' .. mid)
  local id = head and cjson.decode(head).i
  profile.before[mid] = {profile_moves.state_of(profile.base, mid, id), id}
end
local function take_out(owner, mid)
  local profile = of(owner)
  note(profile, mid)
  local json = redis.call('HGET', profile.base, 'm' .. mid)
  if json then
    local names = profile.base .. ':g'
    each_name(profile, mid, cjson.decode(json), function(name) redis.call('ZREM', names, name) end)
    redis.call('HDEL', profile.base, 'm' .. mid, 'e' .. mid, 'x' .. mid)
  end
  redis.call('DEL', root .. 'pfo:' .. mid)
end
local function put_in(item)
  local profile = of(item.owner)
  note(profile, item.mid)
  local names, head = profile.base .. ':g', item.head
  each_name(profile, item.mid, head, function(name) redis.call('ZADD', names, 0, name) end)
  redis.call('HSET', profile.base, 'm' .. item.mid, cjson.encode(head), 'e' .. item.mid, item.entry)
  redis.call('SET', root .. 'pfo:' .. item.mid, item.owner)
  redis.call('HSET', root .. 'pfu:' .. item.user_key, item.owner, item.namespace)
  empty_profile_expiry.cancel(root, item.owner, item.user_key)
end
local function refresh_group(profile, group)
  local before = redis.call('HGET', profile.base, 'u' .. group)
  local after = nil
  local top = redis.call('ZRANGEBYLEX', profile.base .. ':g', '[' .. group .. ' r', '[' .. group .. ' r~', 'LIMIT', 0, 1)[1]
  if top then
    local seconds = static_rule.stable_until(profile.base, group)
    after = seconds and string.format('%.0f', seconds) .. ' ' .. string.match(top, '%x+$')
  end
  if before == (after or false) then return end
  if before then note(profile, string.match(before, '%x+$')) end
  if after then
    note(profile, string.match(after, '%x+$'))
    redis.call('HSET', profile.base, 'u' .. group, after)
  else
    redis.call('HDEL', profile.base, 'u' .. group)
  end
end
-- Note a slot's value: the latest one that has begun, after later ones that begin in the future.
local function refresh_slot(profile, slot)
  local group, mids = slot_group(slot), {}
  for _, name in ipairs(redis.call('ZRANGEBYLEX', profile.base .. ':g', '[' .. group .. ' ', '[' .. group .. ' ~', 'LIMIT', 0, VALUES)) do
    mids[#mids + 1] = string.match(name, '%x+$')
    local begins = cjson.decode(redis.call('HGET', profile.base, 'e' .. mids[#mids])).begins
    if not begins or begins <= profile_moves.now() then break end
  end
  if mids[1] then
    redis.call('HSET', profile.base, 's' .. slot, table.concat(mids, ' '))
    redis.call('ZADD', profile.base .. ':l', cjson.decode(redis.call('HGET', profile.base, 'm' .. mids[1])).l, slot)
  else
    redis.call('HDEL', profile.base, 's' .. slot)
    redis.call('ZREM', profile.base .. ':l', slot)
  end
end
-- Store an entry as static or dynamic, as `static_rule.lua` decides, and note its move.
local function settle(profile, mid)
  local json, now = redis.call('HGET', profile.base, 'm' .. mid), '-'
  local before, id = unpack(profile.before[mid], 1, 2)
  if not json then
    redis.call('ZREM', profile.base .. ':s', mid)
    redis.call('ZREM', profile.base .. ':d', mid)
  else
    local head = cjson.decode(json)
    id = head.i
    local score = static_rule.score(profile.base, mid, head)
    now = profile_moves.settled(profile.base, mid, score)
    redis.call('ZADD', profile.base .. (score and ':s' or ':d'), string.format('%.6f', score or head.l), mid)
    redis.call('ZREM', profile.base .. (score and ':d' or ':s'), mid)
  end
  profile_moves.note(profile.base, before, now, id)
end
local function write_page(profile, name, lines)
  local key, text = profile.base .. ':r', table.concat(lines, '\n')
  if (redis.call('HGET', key, name) or '') == text then return false end
  if text == '' then redis.call('HDEL', key, name) else redis.call('HSET', key, name, text) end
  return true
end
local function write_list(profile, letter)
  local rows = redis.call('ZREVRANGE', profile.base .. ':' .. letter, 0, PAGE * PAGES - 1, 'WITHSCORES')
  local changed = false
  for page = 0, PAGES - 1 do
    local lines = {}
    for i = page * PAGE * 2 + 1, math.min((page + 1) * PAGE * 2, #rows), 2 do
      lines[#lines + 1] = rows[i + 1] .. ' ' .. redis.call('HGET', profile.base, 'e' .. rows[i])
    end
    changed = write_page(profile, letter .. page, lines) or changed
  end
  return changed
end
local function write_slots(profile)
  local lines = {}
  for _, slot in ipairs(redis.call('ZREVRANGE', profile.base .. ':l', 0, PAGE * PAGES - 1)) do
    for mid in string.gmatch(redis.call('HGET', profile.base, 's' .. slot), '%x+') do
      lines[#lines + 1] = slot .. ' ' .. redis.call('HGET', profile.base, 'e' .. mid)
    end
  end
  return write_page(profile, 'l', lines)
end
for i, item in ipairs(items) do
  local moved = read_state.has_changed(root .. 'm:' .. item.mid, item.mid, item.state)
  done[i] = moved and 0 or 1
  if not moved then
    local former = redis.call('GET', root .. 'pfo:' .. item.mid)
    if former then take_out(former, item.mid) end
    if item.owner then put_in(item) end
  end
end
for owner, profile in pairs(owners) do
  for group in pairs(profile.groups) do refresh_group(profile, group) end
  for slot in pairs(profile.slots) do refresh_slot(profile, slot) end
  for mid in pairs(profile.affected) do settle(profile, mid) end
  local static, dynamic, slots = write_list(profile, 's'), write_list(profile, 'd'), write_slots(profile)
  if static or dynamic or slots then redis.call('HINCRBY', profile.base .. ':r', 'v', 1) end
  profile_moves.await_next(root, owner)
  if redis.call('EXISTS', profile.base) == 0 then empty_profile_expiry.start(root, owner) end
end
return done
