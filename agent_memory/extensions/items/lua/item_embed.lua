#!lua
-- Stores an item's vector, unless the item was put again after its text was read. Its vectors of other models stay.
--   model   the digest of the embedding model
-- KEYS: item
-- ARGV: fence, field, vector?, model
-- -> 1, or 0 if the item changed or is missing
if redis.call('HGET', item, 'n') ~= fence then return 0 end
local models = redis.call('HGET', item, 'em')
if models and models ~= '0' and not string.find(models, model, 1, true) then model = models .. ',' .. model end
redis.call('HSET', item, 'em', model)
if vector then redis.call('HSET', item, field, vector) end
return 1
