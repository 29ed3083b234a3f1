#!lua
-- Stores the vector of a procedure's situation, unless the situation changed. Vectors of other models stay.
-- `words` is the situation's digest.
-- KEYS: record
-- ARGV: words, model, vector_field, vector?
-- -> 1, or 0 if the situation changed or the procedure is missing
if redis.call('HGET', record, 'w') ~= words then return 0 end
local models = redis.call('HGET', record, 'em')
if models and not string.find(models, model, 1, true) then model = models .. ',' .. model end
redis.call('HSET', record, 'em', model)
if vector then redis.call('HSET', record, vector_field, vector) end
return 1
