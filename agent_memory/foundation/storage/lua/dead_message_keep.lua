#!lua
-- Moves a message from a stream to the list of dead messages. If several workers find it, only the first moves it.
-- KEYS: stream, dead_messages
-- ARGV: group, message, body, limit: number
-- -> 1 moved, 0 another worker was first
if redis.call('XACK', stream, group, message) == 0 then return 0 end
redis.call('XDEL', stream, message)
redis.call('LPUSH', dead_messages, body)
redis.call('LTRIM', dead_messages, 0, limit - 1)
return 1
