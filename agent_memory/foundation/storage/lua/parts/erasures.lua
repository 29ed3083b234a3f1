-- Refuses writes to data while its erasure is requested or running, or if it ended since the work began. A guard is
-- {root, t, ns, u, s, ag (tags of the owner), whole (data of the whole tenant), since (ms), background, off}: see
-- `storage/erasures.py`. The set `erasing` has the owners of open orders, `erased` the owners of recently ended ones.
local clock = require("storage/clock")
local function digest_of(...) return redis.sha1hex(table.concat({...}, ' ')) end
local function places_of(tenant, owner)
  local namespace, user, places, prefix = owner.ns or '', owner.u or '', {}, digest_of(tenant) .. ':'
  local function add(kind, name)
    places[#places + 1] = prefix .. digest_of(kind, '*', name)
    if namespace ~= '' then places[#places + 1] = prefix .. digest_of(kind, namespace, name) end
  end
  if user ~= '' then add('user', user) end
  if (owner.ag or '') ~= '' then add('agent', owner.ag) end
  for session in string.gmatch(owner.s or '', '%x+') do places[#places + 1] = prefix .. digest_of('session', namespace, user, session) end
  return places
end
local function is_active(guard)
  return not guard.off and redis.call('EXISTS', guard.root .. 'erasing', guard.root .. 'erased') > 0
end
local function under_way(ordered) return string.format('ERASING %.0f', clock.ms - tonumber(ordered)) end
local function objection_to_whole(guard)
  local prefix = digest_of(guard.t)
  local function is_ours(place) return string.sub(place, 1, #prefix) == prefix end
  local ordered = redis.call('ZRANGE', guard.root .. 'erasing', 0, -1, 'WITHSCORES')
  for i = 1, #ordered, 2 do if is_ours(ordered[i]) then return under_way(ordered[i + 1]) end end
  local ended = guard.since and redis.call('ZRANGEBYSCORE', guard.root .. 'erased', guard.since, '+inf') or {}
  for _, place in ipairs(ended) do if is_ours(place) then return 'ERASED 0' end end
  return nil
end
-- Returns why the owner's data must not be written: "ERASING <ms since the order>", "ERASED 0", or nil if it may.
local function objection(guard, tenant, owner)
  for _, place in ipairs(places_of(tenant, owner)) do
    local ordered = redis.call('ZSCORE', guard.root .. 'erasing', place)
    if ordered then return under_way(ordered) end
    local ended = guard.since and redis.call('ZSCORE', guard.root .. 'erased', place)
    if ended and tonumber(ended) >= guard.since then return 'ERASED 0' end
  end
  return nil
end
-- Returns this reason for the owner of a stored document (a memory or a procedure), or nil if there is no document.
local function objection_to_document(guard, key)
  local owner = redis.call('HMGET', key, 't', 'ns', 'u', 's', 'ag')
  return owner[1] and objection(guard, owner[1], {ns = owner[2], u = owner[3], s = owner[4], ag = owner[5]}) or nil
end
local function raise(reason)
  if reason then error({err = reason .. ' an erasure of this owner was ordered'}) end
end
local function tag(text) return (string.gsub(text, '.', function(char) return string.format('%02x', string.byte(char)) end)) end
-- Raises an error for the owner that the guard names, or for `agent`, if given (a plain id, not its tag).
local function refuse(guard, agent)
  if not is_active(guard) then return end
  raise(guard.whole and objection_to_whole(guard) or objection(guard, guard.t, guard))
  if agent then raise(objection(guard, guard.t, {ns = guard.ns, ag = tag(agent)})) end
end
return {is_active = is_active, objection = objection, objection_to_document = objection_to_document, raise = raise, refuse = refuse, tag = tag}
