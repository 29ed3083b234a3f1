"""The Lua of the outbox, and what all scripts begin with."""

from __future__ import annotations

# Why a mark was given up that was begun again and again and never ended.
NEVER_ENDED = "no try ended, not even with an error: the workers may have died on it"

PRELUDE = """
local T = redis.call('TIME')
local US = T[1] * 1000000 + T[2]
local MS = math.floor(US / 1000)
local function wake(key)
  if redis.call('LLEN', key) < 1 then redis.call('LPUSH', key, '1') end
end
local function due(key, at, member)
  redis.call('ZADD', key, 'LT', at, member)
end
local function chunked(cmd, key, items)
  for i = 1, #items, 1000 do redis.call(cmd, key, unpack(items, i, math.min(i + 999, #items))) end
end
"""

# Claims what is due: its mark moves to the end of the lease; what failed too often is given up. A try counts when it ended with an error
# or was begun and did not end (its lease ran out), never when a write merely marked the member again or nobody came to begin it. What is
# marked again while its lease runs is, if `exclusive`, not claimed a second time but due at once when that claim ends; docket's own
# refusal of a running key would lose it.
# `tries` holds per member "<tries that failed> <lease that runs>", then " b" once it was begun, then " 1" if it was marked again meanwhile.
# With a `share`, a tenant has no more claims than that at a time: what of it is due beyond them is looked at a moment later, behind what is
# due of others, so that a flood holds up its own tenant only. What a tenant has is a set of members; those whose lease is over, or that
# ended, go out of it when it is looked at. Whose a member is stands in what it names, in the slot of KEYS[1].
# KEYS due, tries, why, dead, wake
# ARGV limit, lease (ms), most tries, exclusive 1/0, reason if none is known, share (0: any number), start of all keys, kind
# -> {next due in ms or -1, given up, {member, lease, try}…}
DUE_CLAIM = (
    PRELUDE
    + """
local limit = tonumber(ARGV[1])
local lease = string.format('%.0f', MS + tonumber(ARGV[2]))
local out, dead = {}, 0
local share, root, kind = tonumber(ARGV[6]), ARGV[7], ARGV[8]
local room, behind = {}, 0
local function owner(member)
  if kind == 'memory' then return redis.call('HGET', root .. 'm:' .. member, 't') or redis.call('HGET', root .. 'h:' .. member, 't') end
  if kind == 'order' then
    local raw = redis.call('GET', root .. 'ord:' .. member)
    return raw and cjson.decode(raw).tn
  end
  return redis.call('HGET', root .. 'j:' .. member, 'tn')
end
local function admitted(member)
  local tenant = owner(member)
  if not tenant then return true end
  local key = root .. 'run:' .. kind .. ':' .. redis.sha1hex(tenant)
  if not room[tenant] then
    room[tenant] = share
    for _, other in ipairs(redis.call('SMEMBERS', key)) do
      local held = string.match(redis.call('HGET', KEYS[2], other) or '', '^%d+ (%d+)')
      if held and tonumber(held) > MS then room[tenant] = room[tenant] - 1 else redis.call('SREM', key, other) end
    end
  end
  if room[tenant] <= 0 then return false end
  room[tenant] = room[tenant] - 1
  redis.call('SADD', key, member)
  redis.call('PEXPIRE', key, 2 * tonumber(ARGV[2]))
  return true
end
local looked = share > 0 and math.max(limit, 500) or limit
local found = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', MS, 'WITHSCORES', 'LIMIT', 0, looked)
for i = 1, #found, 2 do
  if #out >= limit then break end
  local member = found[i]
  local failed, held, begun = string.match(redis.call('HGET', KEYS[2], member) or '0 0', '^(%d+) (%d+)( ?b?)')
  failed = tonumber(failed)
  if begun == ' b' and tonumber(held) == tonumber(found[i + 1]) then failed = failed + 1 end
  if ARGV[4] == '1' and tonumber(held) > MS then
    redis.call('ZADD', KEYS[1], held, member)
    redis.call('HSET', KEYS[2], member, failed .. ' ' .. held .. (begun == ' b' and ' b' or '') .. ' 1')
  elseif failed >= tonumber(ARGV[3]) then
    redis.call('ZREM', KEYS[1], member)
    redis.call('HDEL', KEYS[2], member)
    redis.call('ZADD', KEYS[4], MS, member)
    redis.call('HSETNX', KEYS[3], member, ARGV[5])
    dead = dead + 1
  elseif share > 0 and not admitted(member) then
    behind = behind + 1
    redis.call('ZADD', KEYS[1], string.format('%.0f', MS + 20 + behind), member)
    if failed > 0 then redis.call('HSET', KEYS[2], member, failed .. ' 0') end
  else
    redis.call('ZADD', KEYS[1], lease, member)
    redis.call('HSET', KEYS[2], member, failed .. ' ' .. lease)
    out[#out + 1] = {member, lease, failed + 1}
  end
end
local head = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
local wait = -1
if head[2] then
  wait = math.max(0, tonumber(head[2]) - MS)
  if wait == 0 then wake(KEYS[5]) end
end
return {wait, dead, out}
"""
)

# Begins claims: their leases start anew, so that a second delivery of the same claim finds it taken.
# KEYS due, tries; ARGV lease (ms), then per claim: member, lease -> per claim the new lease, or -1 when the mark is not ours any more
DUE_BEGIN = (
    PRELUDE
    + """
local out = {}
for i = 2, #ARGV, 2 do
  local member, old = ARGV[i], ARGV[i + 1]
  local score = redis.call('ZSCORE', KEYS[1], member)
  local failed, held, rest = string.match(redis.call('HGET', KEYS[2], member) or '', '^(%d+) (%d+)(.*)$')
  if score and held == old then
    local lease = string.format('%.0f', math.max(MS + tonumber(ARGV[1]), tonumber(old) + 1))
    if tonumber(score) == tonumber(old) then redis.call('ZADD', KEYS[1], lease, member) end
    redis.call('HSET', KEYS[2], member, failed .. ' ' .. lease .. ' b' .. (string.match(rest, ' 1$') or ''))
    out[#out + 1] = lease
  else
    out[#out + 1] = '-1'
  end
end
return out
"""
)

# Ends a claim well: the mark goes, or stays due when something marked it again meanwhile. What another worker took over stays.
# KEYS due, tries, why, dead, wake; ARGV member, lease -> 1 gone, 0 still due
DUE_DONE = (
    PRELUDE
    + """
local score = redis.call('ZSCORE', KEYS[1], ARGV[1])
local held, rest = string.match(redis.call('HGET', KEYS[2], ARGV[1]) or '', '^%d+ (%d+)(.*)$')
if score and held ~= ARGV[2] then return 0 end
redis.call('ZREM', KEYS[4], ARGV[1])
redis.call('HDEL', KEYS[2], ARGV[1])
redis.call('HDEL', KEYS[3], ARGV[1])
if not score then return 1 end
if tonumber(score) ~= tonumber(ARGV[2]) then return 0 end
if not string.match(rest, ' 1$') then return redis.call('ZREM', KEYS[1], ARGV[1]) end
redis.call('ZADD', KEYS[1], MS, ARGV[1])
wake(KEYS[5])
return 0
"""
)

# Prolongs a claim. KEYS due, tries; ARGV member, lease, more (ms) -> the new lease, or -1 when the mark is not ours any more
DUE_RENEW = (
    PRELUDE
    + """
local score = redis.call('ZSCORE', KEYS[1], ARGV[1])
local failed, held, rest = string.match(redis.call('HGET', KEYS[2], ARGV[1]) or '', '^(%d+) (%d+)(.*)$')
if not score or held ~= ARGV[2] then return '-1' end
local lease = string.format('%.0f', MS + tonumber(ARGV[3]))
if tonumber(score) == tonumber(held) then redis.call('ZADD', KEYS[1], lease, ARGV[1]) end
redis.call('HSET', KEYS[2], ARGV[1], failed .. ' ' .. lease .. rest)
return lease
"""
)

# Ends a claim badly: due again after a delay, with the reason. `forgive` does not count the try (the cause lies outside). What was
# marked again meanwhile, or is due for another reason before, does not wait.
# KEYS due, tries, why, wake; ARGV member, lease, delay (ms), reason, forgive 1/0 -> 1 if the claim was still ours
DUE_FAIL = (
    PRELUDE
    + """
local score = redis.call('ZSCORE', KEYS[1], ARGV[1])
local failed, held, rest = string.match(redis.call('HGET', KEYS[2], ARGV[1]) or '', '^(%d+) (%d+)(.*)$')
if not score or held ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[3], ARGV[1], ARGV[4])
if ARGV[5] ~= '1' then failed = failed + 1 end
redis.call('HSET', KEYS[2], ARGV[1], string.format('%d 0', failed))
if string.match(rest, ' 1$') then
  redis.call('ZADD', KEYS[1], MS, ARGV[1])
  wake(KEYS[4])
elseif tonumber(score) == tonumber(ARGV[2]) then
  redis.call('ZADD', KEYS[1], MS + tonumber(ARGV[3]), ARGV[1])
end
return 1
"""
)
