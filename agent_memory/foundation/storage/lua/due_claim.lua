#!lua
-- Claims due marks for docket. A claimed mark moves to the end of its lease. Gives up marks after too many tries
-- (`retry_limit.lua`) and defers marks beyond the tenant's share (`tenant_share.lua`; a share of 0 means no limit).
-- With `exclusive`, a mark that is set again during its lease is due when that claim ends. An expired claim keeps its
-- token, because docket refuses a second task with the same key. A record in `tries` is "<failed tries> <lease>", then
-- " b<token>" once the work began, then " 1" if the mark was set again, or " 2" if it may have been.
-- KEYS: due, tries, reasons, dead, wake
-- ARGV: root, kind, limit: number, lease_ms: number, max_attempts: number, exclusive: flag, share: number, never_ended
-- -> {ms until the next mark is due or -1, marks given up, {member, lease, attempt, lease is over 1/0}…}
local clock = require("storage/clock")
local retry_limit = require("storage/retry_limit")
local tenant_share = require("storage/tenant_share")
local outbox = require("storage/outbox")
local lease = string.format('%.0f', clock.ms + lease_ms)
local claims, given_up, deferred = {}, 0, 0
-- A mark that is set after the lease of running work expired leaves no trace, because ZADD LT keeps the earlier time.
-- So such work may have been marked again (" 2"), and it is done once more.
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
  local failed, leased_until = string.match(record, '^(%d+) (%d+)')
  failed = tonumber(failed)
  local begun, again = string.match(record, ' b%d+') or '', marked_again(record)
  -- The mark was set again during its lease. Another task takes it. The first task continues, and has not failed.
  if not exclusive and tonumber(leased_until) > clock.ms then begun, again = '', '' end
  if exclusive and tonumber(leased_until) > clock.ms then
    redis.call('ZADD', due, leased_until, member)
    redis.call('HSET', tries, member, failed .. ' ' .. leased_until .. begun .. ' 1')
  elseif retry_limit.is_reached(failed) then
    retry_limit.give_up(member, failed)
    given_up = given_up + 1
  elseif share > 0 and not tenant_share.take(member) then
    deferred = deferred + 1
    redis.call('ZADD', due, string.format('%.0f', clock.ms + 20 + deferred), member)
    if failed > 0 or begun ~= '' then redis.call('HSET', tries, member, failed .. ' 0' .. begun .. again) end
  else
    redis.call('ZADD', due, lease, member)
    redis.call('HSET', tries, member, failed .. ' ' .. lease .. begun .. again)
    claims[#claims + 1] = {member, lease, failed + (begun ~= '' and 2 or 1), (tonumber(leased_until) > 0 or begun ~= '') and 1 or 0}
  end
end
local first = redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')
local wait_ms = -1
if first[2] then
  wait_ms = math.max(0, tonumber(first[2]) - clock.ms)
  if wait_ms == 0 then outbox.wake_dispatcher(wake) end
end
return {wait_ms, given_up, claims}
