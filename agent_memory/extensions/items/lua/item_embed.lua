#!lua
-- Stores an item's vector, unless it was put again after its text was read. `model`: the digest of the vector's model.
-- KEYS: item
-- ARGV: fence, field, vector, model
-- -> 1, or 0 if the item changed or is gone
if redis.call('HGET', item, 'n') ~= fence then return 0 end
redis.call('HSET', item, field, vector, 'em', model)
return 1
