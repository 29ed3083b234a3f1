#!lua
-- Claims an idempotency key for a request, given by its digest. A repeated request gets the seed of the first request,
-- so that it makes the same ids.
-- KEYS: answer
-- ARGV: request, lease_ms: number, ttl_seconds: number, seed, holder, tenant
-- -> {"new", the key's seed} | {"other"} | {"underway", ms until its lease ends} | {"done", status, body, headers}
local clock = require("storage/clock")
local stored = redis.call('HMGET', answer, 'q', 's', 'b', 'h', 'u', 'n')
local known_request, status, body, headers, lease, first_seed = unpack(stored, 1, 6)
if known_request and known_request ~= request then return {'other'} end
if status then return {'done', status, body, headers} end
if known_request and tonumber(lease) > clock.ms then return {'underway', tonumber(lease) - clock.ms} end
first_seed = first_seed or seed
redis.call('HSET', answer, 't', tenant, 'q', request, 'n', first_seed, 'u', string.format('%.0f', clock.ms + lease_ms), 'o', holder)
redis.call('EXPIRE', answer, ttl_seconds)
return {'new', first_seed}
