#!lua
-- Claims what is due, to be handed to docket: its mark moves to the end of the lease. What failed too often is given up
-- (`retry_limit.lua`), and what is beyond its tenant's share waits (`tenant_share.lua`; a `share` of 0 is any number).
-- What is marked again while its lease runs is, if `exclusive`, not claimed a second time but due at once when that claim ends. A lease that
-- is over is claimed again and keeps its beginning: docket knows whether its task still runs, and refuses a second one under its key.
-- `tries` holds per member "<tries that failed> <lease that runs>", then " b<token>" once it was begun, then " 1" if it was marked
-- again meanwhile, " 2" if it may have been.
-- KEYS: due, tries, reasons, dead, wake
-- ARGV: root, kind, limit: number, lease_ms: number, max_attempts: number, exclusive: flag, share: number, never_ended
-- -> {ms until the next mark is due or -1, marks given up, {member, lease, attempt, lease is over 1/0}…}
local clock = require("storage/clock")
local retry_limit = require("storage/retry_limit")
local tenant_share = require("storage/tenant_share")
local outbox = require("storage/outbox")
local lease = string.format('%.0f', clock.ms + lease_ms)
local claims, given_up, deferred = {}, 0, 0
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
  local begun, again = string.match(record, ' b%d+') or '', marked_again(record)
  -- Another task takes it beside the one that has it, which has not failed.
  if not exclusive and tonumber(held) > clock.ms then begun, again = '', '' end
  if exclusive and tonumber(held) > clock.ms then
    redis.call('ZADD', due, held, member)
    redis.call('HSET', tries, member, failed .. ' ' .. held .. begun .. ' 1')
  elseif retry_limit.is_reached(failed) then
    retry_limit.give_up(member)
    given_up = given_up + 1
  elseif share > 0 and not tenant_share.take(member) then
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
