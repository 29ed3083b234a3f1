"""Define the Redis keys that several features share. Features define their own keys in `Feature.keys`.

The table lists each key with its type, content, and lifetime. `{0}` is the hash tag of a bucket: all of a bucket's keys
share a slot in a Redis Cluster. A store has REDIS_BUCKETS buckets: `{0}`, `{1}`, and so on. Each bucket contains all
of its tenants' keys. Only `{0}` contains the API keys (tok, toks, tok-secret) and the browser logins (browser). It also
contains the tenants' request limits (rate), the load over time (load), and the number of buckets (in cfg).

am:{0}:w:<sid>      hash    a session: version, fence, identity, context, data …           the session's TTL, else until deleted
am:{0}:w:<sid>:m    list    its messages, oldest first: "<seq> <tokens> <json>"            as the session
am:{0}:w:<sid>:i    zset    message identity -> seq, for writing each message once         as the session
am:{0}:wd:<sid>     hash    what the session index knows of it (identity, created)         as the session
am:{0}:j:<sid>      hash    the journal's cursors and identity                             until worked off and the session is gone
am:{0}:j:<sid>:l    list    messages that wait for promotion and extraction, and a few before them   as the journal
am:{0}:j:<sid>:o    hash    the session's own memories that wait for promotion, by id, each with its writer's rights   until promoted
am:{0}:j:<batch>    hash    a journal of one batch that extraction gave up: "<sid>.<cursor>"; :l as above   until replayed or dropped
am:{0}:jx:<sid>     set     the cursors of a session's batches that are set aside          until the last is replayed or dropped
am:{0}:wt:<user>    zset    a user's sessions with messages or memories that wait, by the time (ms) of the last   until nothing waits
am:{0}:m:<mid>      hash    a long-term memory with its index fields                       until deleted
am:{0}:v:<mid>      hash    its vector, with the same index fields                             until deleted
am:{0}:p:<mid>.<n>  hash    a passage of a long one: its terms and vector, with the same index fields   until deleted, or its text changes
am:{0}:h:<mid>      hash    a current memory whose time is over, with its vector           until deleted
am:{0}:h:<mid>.<version> hash  a version that is no longer current, with its vector        until its memory is deleted
am:{0}:mh:<mid>     zset    what else there is of a memory: versions, aliases (a), changes (c)  as its memory
am:{0}:ev:<mid>     hash    evidence that came after a memory was written, a message's by "m<mid>"   as its memory
am:{0}:al:<mid>     string  another id of a memory: the memory, and what was given under it   as its memory
am:{0}:by:<scope>   hash    which current memory has given words (see `records.standing`) or a slot ("s")   as those memories
am:{0}:ch:<change>  hash    a change of memories that can be undone, or a proposal of one     until a memory of it is deleted
am:{0}:bare         set     versions that were retired before they had a vector           until they have one
am:{0}:mo:<sid>     zset    the message memories of a session in order of arrival, by any name   until the last is deleted
am:{0}:use           hash    how often memories were read and when last (ms), by mid          until the memory is deleted, or found to be
am:{0}:use:unfolded  set     memories whose time of reading the index does not know yet       until it does
am:{0}:mt:<mid>     string  tombstone (µs of the deletion): nothing that was written before brings this memory back   30 days
am:{0}:due:<kind>   zset    the outbox: what is due, scored by the time (ms) it is due     until done
am:{0}:try:<kind>   hash    tries of a mark that failed since it last succeeded, and its lease   until done
am:{0}:why:<kind>   hash    why the last try of a mark failed                              until done or dropped
am:{0}:dead:<kind>  zset    marks given up, scored by the time (ms)                        until replayed or dropped
am:{0}:del:<name>   string  an order to delete everything of a session or a user, then its receipt   30 days after it was carried out
am:{0}:erasing      zset    whose erasure is ordered (digests), by its time (ms)            until it is done
am:{0}:erased       zset    whose erasure is done (digests), by its time (ms)               2 hours
am:{0}:xo:<id>      string  the receipt of an export: counts, and not whose it was               30 days
am:{0}:ord:<name>   string  an order: work that somebody asked for, its arguments, a purge's receipt   7 days
am:{0}:seen         hash    how far (µs) a periodic job has looked, and how often it began and never ended   for ever
am:{0}:apart:<pair> string  these two memories were judged: they differ, or one may end the other   30 days
am:{0}:idem:<key>   hash    the answer that was given under an Idempotency-Key                 a day
am:{0}:dead-messages list   messages of docket that no worker could read, the last 1,000       until dropped
am:{0}:run:<kind>:<tenant> set  marks that a tenant has claimed, the ended ones until somebody looks   two leases after the last
am:{0}:wake         list    one token while there is something due, so that workers need not poll
am:{0}:mv:<source>  string  how far a move from another server's Redis is, and its report   30 days after its last step
am:{0}:mv:<source>:s hash   its sessions and views that were moved, each with what it was   30 days after its last step
am:{0}:fg:<id>      hash    the receipt of what was forgotten by request, with a copy of it for an undo   FORGET_UNDO_SECONDS
am:{0}:fo:<mid>      string  whose an id is that was forgotten by request                  as the receipt, or until an undo
am:{0}:fgu:<user>   zset    a user's receipts of that, by the time (ms) of their end            as the last of them
am:{0}:xr:<tenant>  hash    rules for taking facts, by namespace and user                  until deleted
am:{0}:tk:<task>    string  a task that a caller can follow                                7 days
am:{0}:tok:<digest> hash    an API key's rights, by the keyed digest of its secret         until revoked, or 30 days after its end
am:{0}:toks         hash    the digests of the API keys, by id                             until revoked
am:{0}:tok-secret   string  the key of those digests, unless AUTH_SECRET is set            for ever
am:{0}:browser:<digest> string  the API key's digest, or claims, of a browser's login; empty: a used login   12 hours
am:{0}:rate:<tenant> hash   what is left in a tenant's bucket of requests                  until it is full again
am:{0}:spent:<tenant> hash  the model tokens that a tenant used on a day                   2 days
am:{0}:ctx:<model>  string  the tokens that a model takes at its server, learned from a refusal   an hour
am:{0}:it:<iid>     hash    an item (a JSON value by path and key) with its vector          until deleted, or its TTL is over
am:{0}:cfg          hash    which store this is, its buckets, the key of ids, means of embedding models, former indexes   for ever
am:{0}:ix:…         index   the search indexes
am:{0}:<docket>:…           docket's own, in a store of several buckets or on a Redis Cluster; else am:<docket>:…   until done
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b, sha1

from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.core.task_kinds import DueKind


def joined(*parts: str | None) -> bytes:
    """Join strings, each with its length as a prefix, so that different sequences never produce the same bytes."""
    return b"".join([b"-" if part is None else b"%d:%b" % (len(raw := part.encode()), raw) for part in parts])


def digest(*parts: str | None) -> str:
    """Return a digest of a sequence of strings as 32 hex digits.

    ("a", "bc") and ("ab", "c") have different digests, and so do None and "".
    """
    return blake2b(joined(*parts), digest_size=16).hexdigest()


def bucket_of(tenant: str, buckets: int) -> int:
    """Return the number of a tenant's bucket. Never change this function, because stored data depends on it."""
    return 0 if buckets == 1 else int.from_bytes(blake2b(tenant.encode(), digest_size=8).digest()) % buckets


def new_mid(tenant: str, memory_id: str) -> str:
    """Return the same as `Keys.mid`, `digest("memory", tenant, memory_id)`, but without its cache."""
    raw = memory_id.encode()
    return blake2b(b"%b%d:%b" % (_before_ids(tenant), len(raw), raw), digest_size=16).hexdigest()


@lru_cache(maxsize=8192)
def _before_ids(tenant: str) -> bytes:
    return b"6:memory%d:%b" % (len(raw := tenant.encode()), raw)


# Cached, because each turn of a conversation reads nearly the same messages.
_mid = lru_cache(maxsize=8192)(new_mid)


@lru_cache(maxsize=8192)
def _sid(tenant: str, namespace: str | None, user_id: str | None, session_id: str) -> str:
    return digest("session", tenant, namespace, user_id, session_id)


def tag(value: str) -> str:
    """Return the index tag of a string: its UTF-8 in hexadecimal, which cannot contain query syntax."""
    return value.encode("utf-8").hex()


def untag(value: str) -> str:
    """Return the string that `tag` encoded."""
    return bytes.fromhex(value).decode("utf-8")


@dataclass(frozen=True, slots=True)
class SessionKeys:
    sid: str
    meta: str
    messages: str
    ids: str
    doc: str
    journal: str
    journal_list: str
    journal_own: str
    set_aside: str
    order: str


def _order(root: str, sid: str) -> str:
    return f"{root}mo:{sid}"


@lru_cache(maxsize=2048)
def _session(root: str, sid: str) -> SessionKeys:
    session, journal = f"{root}w:{sid}", f"{root}j:{sid}"
    return SessionKeys(
        sid=sid,
        meta=session,
        messages=f"{session}:m",
        ids=f"{session}:i",
        doc=f"{root}wd:{sid}",
        journal=journal,
        journal_list=f"{journal}:l",
        journal_own=f"{journal}:o",
        set_aside=f"{root}jx:{sid}",
        order=_order(root, sid),
    )


class _Key:
    """A key without parameters, or a prefix of keys."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, keys: Keys, owner: type[Keys]) -> str:
        return keys.root + self._name


@dataclass(frozen=True, slots=True)
class Keys:
    prefix: str = "am"
    bucket: int = 0
    root: str = field(init=False)

    journal_prefix = _Key("j:")
    vector_prefix = _Key("v:")
    passage_prefix = _Key("p:")
    memory_prefix = _Key("m:")
    session_doc_prefix = _Key("wd:")
    usage = _Key("use")
    usage_unfolded = _Key("use:unfolded")
    history_prefix = _Key("h:")
    bare = _Key("bare")
    change_prefix = _Key("ch:")
    erasing = _Key("erasing")
    tokens = _Key("toks")
    token_secret = _Key("tok-secret")
    dead_messages = _Key("dead-messages")
    job_times = _Key("seen")
    wake = _Key("wake")
    config = _Key("cfg")

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", f"{self.prefix}:{{{self.bucket}}}:")

    def sid(self, tenant: str, ref: SessionRef) -> str:
        """Return a session's name in keys, which is a digest of the tenant, namespace, user, and session id."""
        return _sid(tenant, ref.namespace, ref.user_id, ref.session_id)

    def session(self, sid: str) -> SessionKeys:
        return _session(self.root, sid)

    def waiting(self, tenant: str, user_id: str) -> str:
        """Return the key of the set with a user's sessions that wait for background work."""
        return f"{self.root}wt:{digest('waiting', tenant, user_id)}"

    def mid(self, tenant: str, memory_id: str) -> str:
        """Return a memory's name in keys, which is a digest of the tenant and memory id."""
        return _mid(tenant, memory_id)

    def memory(self, mid: str) -> str:
        return f"{self.root}m:{mid}"

    def vector(self, mid: str) -> str:
        return f"{self.root}v:{mid}"

    def order(self, sid: str) -> str:
        return _order(self.root, sid)

    def tombstone(self, mid: str) -> str:
        return f"{self.root}mt:{mid}"

    def history(self, name: str) -> str:
        """Return the key of a former version (`name` is "<mid>.<version>") or of an ended memory ("<mid>")."""
        return f"{self.root}h:{name}"

    def ledger(self, mid: str) -> str:
        return f"{self.root}mh:{mid}"

    def evidence(self, mid: str) -> str:
        return f"{self.root}ev:{mid}"

    def alias(self, mid: str) -> str:
        return f"{self.root}al:{mid}"

    def by(self, scope: str) -> str:
        return f"{self.root}by:{scope}"

    def change(self, change_id: str) -> str:
        return f"{self.root}ch:{change_id}"

    def due(self, kind: DueKind) -> str:
        return f"{self.root}due:{kind}"

    def tries(self, kind: DueKind) -> str:
        return f"{self.root}try:{kind}"

    def why(self, kind: DueKind) -> str:
        return f"{self.root}why:{kind}"

    def dead(self, kind: DueKind) -> str:
        return f"{self.root}dead:{kind}"

    def erasure(self, name: str) -> str:
        return f"{self.root}del:{name}"

    def forgetting(self, name: str) -> str:
        return f"{self.root}fg:{name}"

    def forgettings(self, user: str) -> str:
        """Return the key of the set with a user's receipts. `user` is the owner's digest."""
        return f"{self.root}fgu:{user}"

    def export(self, name: str) -> str:
        return f"{self.root}xo:{name}"

    def idempotency(self, tenant: str, key: str, *limits: str | None) -> str:
        return f"{self.root}idem:{digest('idempotency', tenant, key, *limits)}"

    def token(self, digest: str) -> str:
        return f"{self.root}tok:{digest}"

    def browser_session(self, digest: str) -> str:
        return f"{self.root}browser:{digest}"

    def rate(self, tenant: str) -> str:
        return f"{self.root}rate:{digest('rate', tenant)}"

    def spent(self, tenant: str) -> str:
        return f"{self.root}spent:{digest('spent', tenant)}"

    def load(self, step: int, begin: int) -> str:
        """Return the key of the load data for the `step` seconds that start at `begin` (seconds)."""
        return f"{self.root}load:{step}:{begin}"

    def context_limit(self, where: str, model: str) -> str:
        return f"{self.root}ctx:{digest('context', where, model)}"

    def context_asked(self, where: str, model: str) -> str:
        return f"{self.root}ctx:{digest('asked', where, model)}"

    def order_of_work(self, name: str) -> str:
        return f"{self.root}ord:{name}"

    def rules(self, tenant: str) -> str:
        return f"{self.root}xr:{digest('rules', tenant)}"

    def item(self, iid: str) -> str:
        return f"{self.root}it:{iid}"

    def task(self, tenant: str, task_id: str) -> str:
        return f"{self.root}tk:{digest('task', tenant, task_id)}"

    def apart(self, pair: str) -> str:
        return f"{self.root}apart:{pair}"

    def running(self, kind: DueKind, tenant: str) -> str:
        """Return the key of the set with a tenant's claims. `tenant_share.lua` builds the same name."""
        owner = tag(tenant) if kind in (DueKind.MEMORY, DueKind.FOLLOW, DueKind.ITEM) else tenant
        return f"{self.root}run:{kind}:{sha1(owner.encode(), usedforsecurity=False).hexdigest()}"

    def move(self, source: str) -> str:
        return f"{self.root}mv:{source}"

    def index(self, name: str) -> str:
        return f"{self.root}ix:{name}"
