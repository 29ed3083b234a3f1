"""Define the Redis keys that several features share. Features define their own keys in `Feature.keys`.

`{0}` is a bucket's hash tag, and each key of a tenant is in that tenant's bucket. Only `{0}` contains API keys (tok,
toks, tok-secret), browser logins (browser), request limits (rate), the load (load), and the number of buckets (cfg).

am:{0}:w:<sid>      hash    a session: version, fence, identity, context, data …   the session's TTL, or until deleted
am:{0}:w:<sid>:m    list    the session's messages, oldest first: "<seq> <tokens> <json>"   as the session
am:{0}:w:<sid>:i    zset    identities of messages, scored by number, so that each message is stored once   as the session
am:{0}:wd:<sid>     hash    its index entry: `t`, `ns`, `u`, `s`, `ag`: tenant to agent (hexadecimal), `c` creation   as the session
am:{0}:j:<sid>      hash    the journal's cursors and identity   until its work is done and the session is deleted
am:{0}:j:<sid>:l    list    messages that wait for promotion or extraction, and a few before them; `-…`: never promoted   as the journal
am:{0}:j:<sid>:o    hash    the session's `memories` that wait for promotion, by id, each with its writer's rights   until promoted
am:{0}:j:<batch>    hash    the journal of a batch that extraction gave up on ("<sid>.<cursor>"); `:l` as above   until replayed or dropped
am:{0}:jx:<sid>     set     the cursors of the session's batches that extraction gave up on   until the last is replayed or dropped
am:{0}:wt:<user>    zset    a user's sessions with waiting messages or memories, by the time (ms) of the latest   until nothing waits
am:{0}:m:<mid>      hash    a current memory with its index fields   until deleted
am:{0}:v:<mid>      hash    the vector of a current memory, with the same index fields   until deleted
am:{0}:p:<mid>.<n>  hash    a passage of a long memory: terms, vector, the same index fields   until deleted, or until its text changes
am:{0}:h:<mid>      hash    an ended memory, with its vector   until deleted
am:{0}:h:<mid>.<version> hash    a former version of a memory, with its vector   until the memory is deleted
am:{0}:mh:<mid>     zset    a memory's versions, aliases (`a…`) and changes (`c…`)   as the memory
am:{0}:ev:<mid> hash    later evidence, by digest or `m<mid>` (message); `r…`: a session's older evidence, `times` in all   as the memory
am:{0}:al:<mid>     string  an alias: the memory to which this mid leads, and the digest of the content that had this id   as the memory
am:{0}:by:<scope>   hash    mids of current memories, by digests of their words or slot   as the memories
am:{0}:ch:<change>  hash    a change to memories: one that can be undone, or a proposed one   until one of its memories is deleted
am:{0}:bare         set     versions that ended before they had a vector   until they have one
am:{0}:mo:<sid>     zset    the session's message memories and their aliases, in order of arrival   until the last is deleted
am:{0}:use          hash    for each mid: "<number of reads> <last read (ms)>"   until the memory is deleted
am:{0}:use:unfolded set     memories whose last read is not in the index yet   until it is
am:{0}:mt:<mid>     string  tombstone: the time of the deletion (µs); earlier work cannot restore the memory   30 days
am:{0}:due:<kind>   zset    the outbox: marks, scored by the time (ms) when they are due   until done
am:{0}:try:<kind>   hash    for each mark: "<failed attempts> <end of lease (ms)>", then " b<token>" once the task has started   until done
am:{0}:why:<kind>   hash    for each mark: why its last attempt failed   until done or dropped
am:{0}:dead:<kind>  zset    dead letters, scored by the time (ms) when they failed   until replayed or dropped
am:{0}:del:<name>   string  the order to erase a session, user or agent; later its receipt   30 days after the erasure
am:{0}:delr:<tenant> zset    names of receipts of finished erasures, by time (ms)   30 days
am:{0}:erasing      zset    owners (digests) whose erasure is waiting or running, by time (ms)   until it is done
am:{0}:erased       zset    owners (digests) whose erasure is done, by time (ms)   2 hours
am:{0}:xo:<id>      string  the receipt of an export: counts, without the owner   30 days
am:{0}:ord:<name>   string  an order: its job and arguments, or a purge's receipt   7 days
am:{0}:seen         hash    how far (µs) each periodic job has processed changes; `begun:…`: its unfinished starts   forever
am:{0}:apart:<pair> string  two memories that have been compared: they differ, or one may end the other   30 days
am:{0}:uncompared:<tenant> set imported facts that were not yet compared for contradictions   until compared, at most 30 days
am:{0}:unmerged:<tenant> set imported facts that were not yet compared for duplicates   until compared, at most 30 days
am:{0}:idem:<key> hash  `s` status, `b` body, `h` headers; `t` tenant; `q` request digest; `u`, `o` lock (end, owner); `n` seed   a day
am:{0}:dead-messages list    docket's messages that no worker could read, at most the last 1,000   until dropped
am:{0}:run:<kind>:<tenant> set     a tenant's claimed marks; ended claims are removed later   two leases after the last claim
am:{0}:wake         list    one token while work is due, so that workers need not poll
am:{0}:cfg          hash    which store this is, its buckets, the key of ids, means of embedding models, former indexes   forever
am:{0}:ix:…         index   the search indexes
am:{0}:<docket>:…           docket's own keys, in a store of several buckets or on a Redis Cluster; else am:<docket>:…   until done
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b, sha1

from agent_memory.foundation.core.scope import SessionRef
from agent_memory.foundation.core.task_kinds import DueKind


def joined(*parts: str | None) -> bytes:
    """Join strings so that different sequences always produce different bytes."""
    return b"".join([b"-" if part is None else b"%d:%b" % (len(raw := part.encode()), raw) for part in parts])


def digest(*parts: str | None) -> str:
    """Return a digest of strings as 32 hex digits. None and an empty string differ."""
    return blake2b(joined(*parts), digest_size=16).hexdigest()


def bucket_of(tenant: str, buckets: int) -> int:
    """Return the tenant's bucket number."""
    # Never change this function, because stored data depends on it.
    return 0 if buckets == 1 else int.from_bytes(blake2b(tenant.encode(), digest_size=8).digest()) % buckets


def new_mid(tenant: str, memory_id: str) -> str:
    """Like `Keys.mid`, but without caching the result."""
    return digest("memory", tenant, memory_id)


# Cached, because each turn in a conversation reads nearly the same messages.
_mid = lru_cache(maxsize=8192)(new_mid)


@lru_cache(maxsize=8192)
def _sid(tenant: str, namespace: str | None, user_id: str | None, session_id: str) -> str:
    return digest("session", tenant, namespace, user_id, session_id)


def tag(value: str) -> str:
    """Encode a string as an index tag, which cannot contain query syntax."""
    return value.encode("utf-8").hex()


def untag(value: str) -> str:
    """Decode a string encoded by `tag`."""
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
    dead_batches: str
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
        dead_batches=f"{root}jx:{sid}",
        order=_order(root, sid),
    )


class _Key:
    """A key with no parameters, or a key prefix."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, keys: Keys, owner: type[Keys]) -> str:
        return keys.root + self._name


def _named(prefix: str) -> Callable[[Keys, str], str]:
    return lambda keys, name: f"{keys.root}{prefix}{name}"


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

    memory = _named("m:")
    vector = _named("v:")
    tombstone = _named("mt:")
    ledger = _named("mh:")
    evidence = _named("ev:")
    alias = _named("al:")
    by = _named("by:")
    change = _named("ch:")
    erasure = _named("del:")
    erasure_receipts = _named("delr:")
    forgetting = _named("fg:")
    export = _named("xo:")
    token = _named("tok:")
    browser_session = _named("browser:")
    order_of_work = _named("ord:")
    item = _named("it:")
    apart = _named("apart:")
    index = _named("ix:")
    due = _named("due:")
    tries = _named("try:")
    why = _named("why:")
    dead = _named("dead:")

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", f"{self.prefix}:{{{self.bucket}}}:")

    def sid(self, tenant: str, ref: SessionRef) -> str:
        """Return the name that identifies a session in keys."""
        return _sid(tenant, ref.namespace, ref.user_id, ref.session_id)

    def session(self, sid: str) -> SessionKeys:
        return _session(self.root, sid)

    def waiting(self, tenant: str, user_id: str) -> str:
        """Return the key that lists a user's sessions with pending work."""
        return f"{self.root}wt:{digest('waiting', tenant, user_id)}"

    def mid(self, tenant: str, memory_id: str) -> str:
        """Return the name that identifies a memory in keys."""
        return _mid(tenant, memory_id)

    def order(self, sid: str) -> str:
        return _order(self.root, sid)

    def history(self, name: str) -> str:
        """Return the key of a former version ("<mid>.<version>") or an ended memory ("<mid>")."""
        return f"{self.root}h:{name}"

    def forgettings(self, user: str) -> str:
        """Return the key that lists a user's receipts for forgetting. `user` is a digest."""
        return f"{self.root}fgu:{user}"

    def idempotency(self, tenant: str, key: str, *limits: str | None) -> str:
        return f"{self.root}idem:{digest('idempotency', tenant, key, *limits)}"

    def rate(self, tenant: str) -> str:
        return f"{self.root}rate:{digest('rate', tenant)}"

    def uncompared(self, tenant: str) -> str:
        """Return the key for imported facts not yet compared for contradictions."""
        return f"{self.root}uncompared:{digest('uncompared', tenant)}"

    def unmerged(self, tenant: str) -> str:
        """Return the key for imported facts not yet compared for duplicates."""
        return f"{self.root}unmerged:{digest('unmerged', tenant)}"

    def spent(self, tenant: str) -> str:
        return f"{self.root}spent:{digest('spent', tenant)}"

    def load(self, step: int, begin: int) -> str:
        """Return the key for the load recorded from `begin` (in seconds since 1970)."""
        return f"{self.root}load:{step}:{begin}"

    def context_limit(self, where: str, model: str, *, is_request_limit: bool = False) -> str:
        return f"{self.root}ctx:{digest('asked' if is_request_limit else 'context', where, model)}"

    def blind(self, where: str, model: str) -> str:
        return f"{self.root}ctx:{digest('blind', where, model)}"

    def rules(self, tenant: str) -> str:
        return f"{self.root}xr:{digest('rules', tenant)}"

    def task(self, tenant: str, task_id: str) -> str:
        return f"{self.root}tk:{digest('task', tenant, task_id)}"

    def running(self, kind: DueKind, tenant: str) -> str:
        """Return the key that lists a tenant's claims."""
        # `tenant_share.lua` builds the same key.
        owner = tag(tenant) if kind in (DueKind.MEMORY, DueKind.FOLLOW, DueKind.ITEM) else tenant
        return f"{self.root}run:{kind}:{sha1(owner.encode(), usedforsecurity=False).hexdigest()}"
