#!lua
-- Claims what is due, to be handed to docket: its mark moves to the end of the lease; what failed too often is given up. What is marked
-- again while its lease runs is, if `exclusive`, not claimed a second time but due at once when that claim ends. A lease that is over is
-- claimed again and keeps its beginning: docket knows whether its task still runs, and refuses a second one under its key.
-- `tries` holds per member "<tries that failed> <lease that runs>", then " b<token>" once it was begun (" b" alone: by the version before),
-- then " 1" if it was marked again meanwhile, " 2" if it may have been.
-- With a `share` (0: any number), a tenant has no more claims than that at a time: what of it is due beyond them is looked at a moment
-- later, behind what is due of others, so that a flood holds up its own tenant only. What a tenant has is a set of members; those whose
-- lease is over, or that ended, go out of it when it is looked at. Whose a member is stands in what it names, in the slot of `due`.
-- KEYS: due, tries, reasons, dead, wake
-- ARGV: root, kind, limit: number, lease_ms: number, max_attempts: number, exclusive: flag, share: number, never_ended
-- -> {ms until the next mark is due or -1, marks given up, {member, lease, attempt, lease is over 1/0}…}
local clock = require("storage/clock")
local outbox = require("storage/outbox")
local lease = string.format('%.0f', clock.ms + lease_ms)
local claims, given_up, deferred = {}, 0, 0
local free_claims = {}
local function tenant_of(member)
  if kind == 'memory' or kind == 'follow' then
    return redis.call('HGET', root .. 'm:' .. member, 't') or redis.call('HGET', root .. 'h:' .. member, 't')
  end
  if kind == 'item' then return redis.call('HGET', root .. 'it:' .. member, 't') end
  if kind == 'order' then
    local json = redis.call('GET', root .. 'ord:' .. member)
    return json and cjson.decode(json).tn
  end
  return redis.call('HGET', root .. 'j:' .. member, 'tn')
end
local function within_share(member)
  local tenant = tenant_of(member)
  if not tenant then return true end
  local running = root .. 'run:' .. kind .. ':' .. redis.sha1hex(tenant)
  if not free_claims[tenant] then
    free_claims[tenant] = share
    for _, other in ipairs(redis.call('SMEMBERS', running)) do
      local held = string.match(redis.call('HGET', tries, other) or '', '^%d+ (%d+)')
      if held and tonumber(held) > clock.ms then
        free_claims[tenant] = free_claims[tenant] - 1
      else
        redis.call('SREM', running, other)
      end
    end
  end
  if free_claims[tenant] <= 0 then return false end
  free_claims[tenant] = free_claims[tenant] - 1
  redis.call('SADD', running, member)
  redis.call('PEXPIRE', running, 2 * lease_ms)
  return true
end
local function begun_by(record, held)
  local token = string.match(record, ' b(%d*)')
  return token and ' b' .. (token == '' and held or token) or ''
end
-- A mark that was set after the lease of work under way was over did not move it, so it cannot be seen: that work is looked at once more.
local function marked_again(record)
  if not string.match(record, ' b') then return '' end
  return string.match(record, '^%d+ %d+.* 1$') and ' 1' or ' 2'
end
local looked_at = share > 0 and math.max(limit, 500) or limit
local marks = redis.call('ZRANGEBYSCORE', due, '-inf', clock.ms, 'WITHSCORES', 'LIMIT', 0, looked_at)
for i = 1, #marks, 2 do
  if #claims >= limit then break end
  local member = marks[i]
  local record = redis.call('HGET', tries, member) or '0 0'
  local failed, held = string.match(record, '^(%d+) (%d+)')
  failed = tonumber(failed)
  local begun, again = begun_by(record, held), marked_again(record)
  -- Another task takes it beside the one that has it, which has not failed.
  if not exclusive and tonumber(held) > clock.ms then begun, again = '', '' end
  if exclusive and tonumber(held) > clock.ms then
    redis.call('ZADD', due, held, member)
    redis.call('HSET', tries, member, failed .. ' ' .. held .. begun .. ' 1')
  elseif failed >= max_attempts then
    redis.call('ZREM', due, member)
    redis.call('HDEL', tries, member)
    redis.call('ZADD', dead, clock.ms, member)
    redis.call('HSETNX', reasons, member, never_ended)
    given_up = given_up + 1
  elseif share > 0 and not within_share(member) then
    deferred = deferred + 1
    redis.call('ZADD', due, string.format('%.0f', clock.ms + 20 + deferred), member)
    if failed > 0 or begun ~= '' then redis.call('HSET', tries, member, failed .. ' 0' .. begun .. again) end
  else
    redis.call('ZADD', due, lease, member)
    redis.call('HSET', tries, member, failed .. ' ' .. lease .. begun .. again)
    claims[#claims + 1] = {member, lease, failed + (begun ~= '' and 2 or 1), (tonumber(held) > 0 or begun ~= '') and 1 or 0}
  end
end
local first = redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')
local wait_ms = -1
if first[2] then
  wait_ms = math.max(0, tonumber(first[2]) - clock.ms)
  if wait_ms == 0 then outbox.wake_dispatcher(wake) end
end
return {wait_ms, given_up, claims}
