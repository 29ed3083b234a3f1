-- Limits the claims of a tenant for one kind of work to `share`. Further marks wait behind the marks of other tenants.
-- Ended and expired claims leave the tenant's set when it is read. The document of a member names its tenant; it is in
-- the same slot as `due`.
-- NEEDS: root, kind, tries, share, lease_ms
local clock = require("storage/clock")
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
-- Returns true if the member's tenant may claim one more mark, and counts the claim.
local function take(member)
  local tenant = tenant_of(member)
  if not tenant then return true end
  local running = root .. 'run:' .. kind .. ':' .. redis.sha1hex(tenant)
  if not free_claims[tenant] then
    free_claims[tenant] = share
    for _, other in ipairs(redis.call('SMEMBERS', running)) do
      local leased_until = string.match(redis.call('HGET', tries, other) or '', '^%d+ (%d+)')
      if leased_until and tonumber(leased_until) > clock.ms then
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
return {take = take}
