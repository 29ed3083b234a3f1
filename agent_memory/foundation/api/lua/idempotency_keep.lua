#!lua
-- Stores the answer to a request, given by its digest, if the key still belongs to this request.
-- KEYS: answer
-- ARGV: request, status, body, headers, ttl_seconds: number
if redis.call('HGET', answer, 'q') == request then
  redis.call('HSET', answer, 's', status, 'b', body, 'h', headers)
  redis.call('HDEL', answer, 'o')
  redis.call('EXPIRE', answer, ttl_seconds)
end
