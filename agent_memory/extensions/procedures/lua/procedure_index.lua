#!lua
-- Stores a situation's vector if the procedure still has these words.
-- KEYS: record
-- ARGV: words, model, vector_field, vector
-- -> 1, or 0 if it changed or is gone
if redis.call('HGET', record, 'w') ~= words then return 0 end
redis.call('HSET', record, vector_field, vector, 'em', model)
return 1
