#!lua
-- Deletes an owner's rules if they are still the expected ones.
-- KEYS: rules
-- ARGV: field, expected
-- -> 1, or 0 if they changed
return redis.call('HGET', rules, field) == expected and redis.call('HDEL', rules, field) or 0
