#!lua
-- Stores an item's vector, unless the item was put again after its text was read.
--   model   the digest of the embedding model
-- KEYS: item
-- ARGV: fence, field, vector, model
-- -> 1, or 0 if the item changed or is missing
if redis.call('HGET', item, 'n') ~= fence then return 0 end
redis.call('HSET', item, field, vector, 'em', model)
return 1
