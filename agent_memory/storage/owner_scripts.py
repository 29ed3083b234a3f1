"""The Lua that knows whose an id is: within a tenant an id belongs to one owner (namespace, user, agent), whatever became of its memory.

And which of the memories that a session is given are news to it.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent_memory.errors import IdTaken
from agent_memory.scope import SessionRef
from agent_memory.storage.keys import tag
from agent_memory_client.models import MemoryRecord

# Expects R (the root of all keys). An owner is "<namespace> <user> <agent>", each a tag or nothing: see `owner_name`.
OWNERS = """
local function owned_by(key)
  local at = redis.call('HMGET', key, 'ns', 'u', 'ag', 'n')
  return at[4] and (at[1] or '') .. ' ' .. (at[2] or '') .. ' ' .. (at[3] or '') or nil
end
-- Whose an id (its mid) is: of who has its memory, the memory that it is another name of, or what history keeps of it; nil when it is free.
local function owner_of(mid, hops)
  if redis.call('EXISTS', R .. 'm:' .. mid, R .. 'h:' .. mid, R .. 'al:' .. mid, R .. 'mh:' .. mid) == 0 then return nil end
  local now = owned_by(R .. 'm:' .. mid) or owned_by(R .. 'h:' .. mid)
  if now then return now end
  -- Whatever an import says: names that name each other in a circle are nobody's.
  local named = (hops or 0) < 4 and redis.call('GET', R .. 'al:' .. mid)
  local owner = named and owner_of(string.match(named, '^%S+'), (hops or 0) + 1)
  if owner then return owner end
  for _, member in ipairs(redis.call('ZREVRANGE', R .. 'mh:' .. mid, 0, -1)) do
    owner = string.match(member, '^%d') and owned_by(R .. 'h:' .. mid .. '.' .. member)
    if owner then return owner end
  end
  return nil
end
"""

# Which of the memories that a session is given are news to it: what it holds unchanged, and was sent along with the rest, is not written
# again. `news_of` gives their places in `own` and, by id, what the session holds still; `hold` notes what it holds from now on. A session
# of a former version noted nothing: there, the same words under the same id are nothing new.
OWN_MEMORIES = """
local function held_by(meta)
  local raw = redis.call('HGET', meta, 'held')
  if raw then return cjson.decode(raw), nil end
  local texts = {}
  for _, one in ipairs(cjson.decode(redis.call('HGET', meta, 'mems') or '[]')) do texts[one.id] = one.text end
  return {}, texts
end
local function news_of(h, meta)
  local fresh, kept, marks = {}, {}, {}
  if #h.own == 0 then return fresh, kept end
  local held, texts = {}, nil
  if meta then held, texts = held_by(meta) end
  for i = 1, #h.held, 3 do marks[h.held[i]] = h.held[i + 1] end
  for i = 1, #h.own, 5 do
    local id, made = h.own[i], h.own[i + 4]
    local mark, at = string.match(held[id] or '', '^(%S+) (%S+)$')
    if mark == marks[id] and (made == '' or made == at) then
      kept[id] = true
    elseif texts and texts[id] and texts[id] == cjson.decode(h.own[i + 1]).record.text then
      kept[id] = true
    else
      fresh[#fresh + 1] = i
    end
  end
  return fresh, kept
end
local function hold(h, meta, kept)
  local known = redis.call('HMGET', meta, 'pm', 'pr', 'held')
  for at, name in ipairs({'pm', 'pr'}) do
    local still, some = {}, false
    for id, value in pairs(cjson.decode(known[at] or '{}')) do
      if kept[id] then still[id], some = value, true end
    end
    if some then redis.call('HSET', meta, name, cjson.encode(still)) elseif known[at] then redis.call('HDEL', meta, name) end
  end
  local held = {}
  for i = 1, #h.held, 3 do held[h.held[i]] = h.held[i + 1] .. ' ' .. h.held[i + 2] end
  if next(held) then
    redis.call('HSET', meta, 'held', cjson.encode(held))
  elseif known[3] then
    redis.call('HDEL', meta, 'held')
  end
end
"""

# Whose some ids are. KEYS any key of the bucket; ARGV root, mids… -> per mid its owner, "-" when it is free
MEMORY_OWNERS = (
    """
local R = ARGV[1]
"""
    + OWNERS
    + """
local out = {}
for i = 2, #ARGV do out[#out + 1] = owner_of(ARGV[i]) or '-' end
return out
"""
)


def owner_name(record: MemoryRecord) -> str:
    """The owner of a memory as the scripts know it."""
    return " ".join(tag(name) if name else "" for name in (record.namespace, record.user_id, record.agent_id))


def one_owner_each(records: Iterable[tuple[int, MemoryRecord]]) -> None:
    """Raises IdTaken when two memories of one request (with their places in it) have an id in common, but not their owner."""
    owners: dict[str, tuple[str | None, ...]] = {}
    for place, record in records:
        owner = (record.namespace, record.user_id, record.agent_id)
        if owners.setdefault(record.id, owner) != owner:
            raise IdTaken([record.id], field=f"memories.{place}.id")


def placed_in(ref: SessionRef, record: MemoryRecord) -> MemoryRecord:
    """A memory that was put into a session: what does not say whose it is belongs where the session belongs."""
    update = {
        "namespace": record.namespace or ref.namespace,
        "user_id": record.user_id or ref.user_id,
        "session_id": record.session_id or ref.session_id,
    }
    return record.model_copy(update=update)
