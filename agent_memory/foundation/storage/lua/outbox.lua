-- The outbox: marks of due work, scored by time (ms), and the list that wakes a waiting dispatcher.
local function wake_dispatcher(wake)
  if redis.call('LLEN', wake) < 1 then redis.call('LPUSH', wake, '1') end
end
local function mark_due(due, at, member)
  redis.call('ZADD', due, 'LT', at, member)
end
local function clear_mark(member, due, tries, reasons, dead)
  redis.call('ZREM', due, member)
  redis.call('HDEL', tries, member)
  redis.call('HDEL', reasons, member)
  redis.call('ZREM', dead, member)
end
return {wake_dispatcher = wake_dispatcher, mark_due = mark_due, clear_mark = clear_mark}
