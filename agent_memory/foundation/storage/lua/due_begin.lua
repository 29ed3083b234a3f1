#!lua
-- Begins work. Each member that is still marked gets a lease and a token that ends it, or is given up
-- (`retry_limit.lua`). A try that began and never ended counts as failed, so that no task kills workers forever.
-- KEYS: due, tries, reasons, dead
-- ARGV: lease_ms: number, max_attempts: number, never_ended, members...
-- -> per member {token, attempt}, or {-1, 0} if the member is no longer marked
local clock = require("storage/clock")
local retry_limit = require("storage/retry_limit")
local claims = {}
for i = members_at, #ARGV do
  local member = ARGV[i]
  local failed, leased_until, begun = string.match(redis.call('HGET', tries, member) or '0 0', '^(%d+) (%d+)( ?b?)')
  failed = tonumber(failed) + (begun == ' b' and 1 or 0)
  if not redis.call('ZSCORE', due, member) then
    claims[#claims + 1] = {'-1', 0}
  elseif retry_limit.is_reached(failed) then
    retry_limit.give_up(member, failed)
    claims[#claims + 1] = {'-1', 0}
  else
    -- The work that begins now covers all marks set until now, so the record drops "marked again".
    local token = string.format('%.0f', math.max(clock.ms + lease_ms, tonumber(leased_until) + 1))
    redis.call('ZADD', due, token, member)
    redis.call('HSET', tries, member, failed .. ' ' .. token .. ' b' .. token)
    claims[#claims + 1] = {token, failed + 1}
  end
end
return claims
