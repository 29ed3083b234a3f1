#!lua
-- Gives an item its vector, unless it was put again since its text was read. `model`: the digest of the vector's model.
-- KEYS: item
-- ARGV: fence, field, vector, model
-- -> 1, or 0 for an item that is another now or gone
if redis.call('HGET', item, 'n') ~= fence then return 0 end
redis.call('HSET', item, field, vector, 'em', model)
return 1
