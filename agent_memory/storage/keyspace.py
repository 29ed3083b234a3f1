"""Every Redis key, what it holds and how long it lives.

`{0}` is the hash tag of a bucket: all keys of a bucket share a slot of a Redis Cluster. A store has one bucket, or REDIS_BUCKETS of them,
`{0}`, `{1}` and so on, each with all of these keys for the tenants in it; API keys (tok, toks, tok-secret), what is left of a tenant's
requests (rate) and the number of buckets (in cfg) are in `{0}` alone.

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
am:{0}:h:<mid>      hash    a current memory whose time is over, with its vector           until deleted
am:{0}:h:<mid>.<version> hash  a version that is no longer current, with its vector        until its memory is deleted
am:{0}:mh:<mid>     zset    what else there is of a memory: versions, "a"liases, "c"hanges    as its memory
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
am:{0}:fg:<id>      hash    the receipt of what was forgotten by request, with a copy of it for an undo   FORGET_UNDO_SECONDS
am:{0}:fgu:<user>   zset    a user's receipts of that, by the time (ms) of their end            as the last of them
am:{0}:xo:<id>      string  the receipt of an export: counts, and not whose it was               30 days
am:{0}:ord:<name>   string  an order: work that somebody asked for, its arguments, a purge's receipt   7 days
am:{0}:sv:<tenant>  hash    the summary views of a tenant, by id                           until deleted
am:{0}:pf:<owner>   hash    a user's profile in a namespace: what each memory, group and slot of it is          until nothing is left of it
am:{0}:pf:<owner>:g zset    which memories say what recurs, on which days, and which are of a slot    as the profile
am:{0}:pf:<owner>:s zset    what is static, by when (s) it ends to be; :d what is dynamic and :l the slots, by when (s) they were last said
am:{0}:pf:<owner>:r hash    the profile as it is read, in pages, and its version              as the profile
am:{0}:pf:<owner>:h list    the latest moves of memories in the profile                       as the profile
am:{0}:pfo:<mid>    string  in whose profile a memory is                                      as its entry there
am:{0}:pfu:<user>   hash    a user's profiles, each with its namespace                        until they are erased
am:{0}:pfx:<tenant> hash    schemas of profiles, by namespace                                 until deleted
am:{0}:tl:<owner>   hash    a user's events in a namespace, and the memories that tell them       until erased
am:{0}:tl:<owner>:b zset    its events by first day, :e those of several days by last day; :b:<facet> and :e:<facet> of a topic or entity
am:{0}:tl:<owner>:s  hash    the summaries of its days, weeks and months, and which wait; :p these by when they may be made
am:{0}:tlp            zset    the timelines with periods that wait for their summary, by when it may be made
am:{0}:tlo:<mid>    string  in whose timeline a memory is                                     as its events there
am:{0}:tlu:<user>   hash    a user's timelines, each with its namespace                       until they are erased
am:{0}:xr:<tenant>  hash    rules for taking facts, by namespace and user                  until deleted
am:{0}:bl:<owner>   hash    the memory blocks of an owner, by label                        until deleted
am:{0}:blh:<owner>:<label> list  the changes of a block, oldest first: the last 500        as the block
am:{0}:bla:<owner>  hash    the blocks of others that an owner's prompts show, with whose they are   until detached or deleted
am:{0}:blu:<user>   hash    the owners of a user that have blocks, or to whom some are attached   until these are deleted
am:{0}:blg:<agent>  hash    the owners of an agent, likewise                                      until these are deleted
am:{0}:svp:<view>   hash    the partitions of a view, by group, each with what it was made of   until its view is deleted
am:{0}:svt          set     tenants that have had views                                    for ever
am:{0}:pr:<pid>     hash    a procedure, or what is known of a tool, with its index fields and its vector   until deleted
am:{0}:pr:<pid>:c   list    a procedure's last changes                                     as the procedure
am:{0}:pr:<pid>:f   list    the last feedback on it                                        as the procedure
am:{0}:prf          set     procedures that did not help, until somebody has looked whether they still do   until then
am:{0}:po:<owner>   string  how often something was learned for an owner, the fence of what is learned   a day after the last
am:{0}:tk:<task>    string  a task that a caller can follow                                7 days
am:{0}:seen         hash    how far (µs) a periodic job has looked, and how often it began and never ended   for ever
am:{0}:apart:<pair> string  these two memories were judged: they differ, or one may end the other   30 days
am:{0}:tok:<digest> hash    an API key's rights, by the keyed digest of its secret         until revoked, or 30 days after its end
am:{0}:toks         hash    the digests of the API keys, by id                             until revoked
am:{0}:tok-secret   string  the key of those digests, unless AUTH_SECRET is set            for ever
am:{0}:rate:<tenant> hash   what is left in a tenant's bucket of requests                  until it is full again
am:{0}:spent:<tenant> hash  the model tokens that a tenant used on a day                   2 days
am:{0}:ctx:<model>  string  the tokens that a model takes at its server, learned from a refusal   an hour
am:{0}:idem:<key>   hash    the answer that was given under an Idempotency-Key                 a day
am:{0}:dead-messages list   messages of docket that no worker could read, the last 1,000       until dropped
am:{0}:run:<kind>:<tenant> set  marks that a tenant has claimed, the ended ones until somebody looks   two leases after the last
am:{0}:wake         list    one token while there is something due, so that workers need not poll
am:{0}:mv:<source>  string  how far a move from another server's Redis is, and its report   30 days after its last step
am:{0}:mv:<source>:s hash   its sessions and views that were moved, each with what it was   30 days after its last step
am:{0}:it:<iid>     hash    an item (a JSON value by path and key) with its vector          until deleted, or its TTL is over
am:{0}:its:<owner>  zset    an owner's items: "<path>!<key>!<iid>", path and key hexadecimal   until the last is deleted
am:{0}:itx:<owner>  zset    those that have a TTL, by the time (ms) of its end              as its:<owner>
am:{0}:itn:<owner>  hash    how many items each path of an owner has                        as its:<owner>
am:{0}:ito:<tenant> hash    the owners of items, each with namespace and user              until their last item is deleted
am:{0}:cfg          hash    which store this is, its buckets, the key of ids, former indexes, and what was looked through once   for ever
am:{0}:ix:…         index   the search indexes
am:{0}:<docket>:…           docket's own, in a store of several buckets or on a Redis Cluster; else am:<docket>:…   until done
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b, sha1

from agent_memory.core.scope import SessionRef
from agent_memory.core.task_kinds import DueKind


def joined(*parts: str | None) -> bytes:
    """A sequence of strings as one, with their lengths."""
    return b"".join([b"-" if part is None else b"%d:%b" % (len(raw := part.encode()), raw) for part in parts])


def digest(*parts: str | None) -> str:
    """32 hex digits of a sequence of strings; lengths are part of it, so that ("a", "bc") and ("ab", "c") differ, as do None and ""."""
    return blake2b(joined(*parts), digest_size=16).hexdigest()


def bucket_of(tenant: str, buckets: int) -> int:
    """The bucket of a tenant among so many: the same for ever, for every process. What is stored depends on it."""
    return 0 if buckets == 1 else int.from_bytes(blake2b(tenant.encode(), digest_size=8).digest()) % buckets


def new_mid(tenant: str, memory_id: str) -> str:
    """As `Keys.mid`, for memories that nobody has asked for yet: `digest("memory", tenant, memory_id)`."""
    raw = memory_id.encode()
    return blake2b(b"%b%d:%b" % (_before_ids(tenant), len(raw), raw), digest_size=16).hexdigest()


@lru_cache(maxsize=8192)
def _before_ids(tenant: str) -> bytes:
    return b"6:memory%d:%b" % (len(raw := tenant.encode()), raw)


# Turn after turn a prompt asks for those of nearly the same messages.
_mid = lru_cache(maxsize=8192)(new_mid)


@lru_cache(maxsize=8192)
def _sid(tenant: str, namespace: str | None, user_id: str | None, session_id: str) -> str:
    return digest("session", tenant, namespace, user_id, session_id)


def tag(value: str) -> str:
    """A string as an index tag: hexadecimal of its UTF-8 bytes, so that no two strings share a tag and none can carry syntax."""
    return value.encode("utf-8").hex()


def untag(value: str) -> str:
    """The string that `tag` was made of."""
    return bytes.fromhex(value).decode("utf-8")


@dataclass(frozen=True, slots=True)
class SessionKeys:
    """The keys of one session."""

    sid: str
    meta: str
    messages: str
    ids: str
    doc: str
    journal: str
    journal_list: str
    journal_own: str
    aside: str
    order: str


def _order(root: str, sid: str) -> str:
    return f"{root}mo:{sid}"


# Turn after turn it is the same sessions.
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
        aside=f"{root}jx:{sid}",
        order=_order(root, sid),
    )


@dataclass(frozen=True, slots=True)
class Keys:
    """All keys of one bucket under one prefix."""

    prefix: str = "am"
    bucket: int = 0
    root: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", f"{self.prefix}:{{{self.bucket}}}:")

    def sid(self, tenant: str, ref: SessionRef) -> str:
        """The name of a session in keys: digest of (tenant, namespace, user, session)."""
        return _sid(tenant, ref.namespace, ref.user_id, ref.session_id)

    def session(self, sid: str) -> SessionKeys:
        return _session(self.root, sid)

    def waiting(self, tenant: str, user_id: str) -> str:
        """The sessions of a user with messages or memories that wait for background work."""
        return f"{self.root}wt:{digest('waiting', tenant, user_id)}"

    @property
    def journal_prefix(self) -> str:
        return f"{self.root}j:"

    def mid(self, tenant: str, memory_id: str) -> str:
        """The name of a memory in keys: digest of (tenant, id)."""
        return _mid(tenant, memory_id)

    def memory(self, mid: str) -> str:
        return f"{self.root}m:{mid}"

    def vector(self, mid: str) -> str:
        return f"{self.root}v:{mid}"

    @property
    def vector_prefix(self) -> str:
        return f"{self.root}v:"

    @property
    def memory_prefix(self) -> str:
        return f"{self.root}m:"

    @property
    def session_doc_prefix(self) -> str:
        return f"{self.root}wd:"

    def order(self, sid: str) -> str:
        return _order(self.root, sid)

    @property
    def usage(self) -> str:
        return f"{self.root}use"

    @property
    def usage_unfolded(self) -> str:
        return f"{self.root}use:unfolded"

    def tombstone(self, mid: str) -> str:
        return f"{self.root}mt:{mid}"

    def history(self, name: str) -> str:
        """Of a version ("<mid>.<version>"), or of a memory whose time is over (its mid)."""
        return f"{self.root}h:{name}"

    @property
    def history_prefix(self) -> str:
        return f"{self.root}h:"

    @property
    def bare(self) -> str:
        return f"{self.root}bare"

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

    @property
    def change_prefix(self) -> str:
        return f"{self.root}ch:"

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
        """The receipts of a user, by the digest of whose they are."""
        return f"{self.root}fgu:{user}"

    def export(self, name: str) -> str:
        return f"{self.root}xo:{name}"

    def idempotency(self, tenant: str, key: str, *limits: str | None) -> str:
        return f"{self.root}idem:{digest('idempotency', tenant, key, *limits)}"

    def token(self, digest: str) -> str:
        return f"{self.root}tok:{digest}"

    @property
    def tokens(self) -> str:
        return f"{self.root}toks"

    @property
    def token_secret(self) -> str:
        return f"{self.root}tok-secret"

    def rate(self, tenant: str) -> str:
        return f"{self.root}rate:{digest('rate', tenant)}"

    def spent(self, tenant: str) -> str:
        return f"{self.root}spent:{digest('spent', tenant)}"

    def context_limit(self, where: str, model: str) -> str:
        return f"{self.root}ctx:{digest('context', where, model)}"

    @property
    def dead_messages(self) -> str:
        return f"{self.root}dead-messages"

    def order_of_work(self, name: str) -> str:
        return f"{self.root}ord:{name}"

    def views(self, tenant: str) -> str:
        return f"{self.root}sv:{digest('views', tenant)}"

    def rules(self, tenant: str) -> str:
        return f"{self.root}xr:{digest('rules', tenant)}"

    def partitions(self, tenant: str, view_id: str) -> str:
        return f"{self.root}svp:{digest('view', tenant, view_id)}"

    def procedure(self, pid: str) -> str:
        """Of a procedure, or of what is known of a tool."""
        return f"{self.root}pr:{pid}"

    def procedure_changes(self, pid: str) -> str:
        return f"{self.root}pr:{pid}:c"

    def procedure_feedback(self, pid: str) -> str:
        return f"{self.root}pr:{pid}:f"

    def procedures_learned(self, owner: str) -> str:
        return f"{self.root}po:{owner}"

    @property
    def procedures_failing(self) -> str:
        return f"{self.root}prf"

    @property
    def procedure_prefix(self) -> str:
        return f"{self.root}pr:"

    @property
    def view_tenants(self) -> str:
        return f"{self.root}svt"

    def profile(self, owner: str) -> str:
        """What a profile is made of; what else there is of it stands behind a letter of its own."""
        return f"{self.root}pf:{owner}"

    def timeline(self, owner: str) -> str:
        """The events of a timeline; its sets by day stand behind a letter of their own."""
        return f"{self.root}tl:{owner}"

    @property
    def waiting_timelines(self) -> str:
        """The timelines with periods that wait for their summary."""
        return f"{self.root}tlp"

    def timeline_owner(self, mid: str) -> str:
        return f"{self.root}tlo:{mid}"

    def timelines_of_user(self, user: str) -> str:
        return f"{self.root}tlu:{user}"

    def item(self, iid: str) -> str:
        return f"{self.root}it:{iid}"

    @property
    def item_prefix(self) -> str:
        return f"{self.root}it:"

    def item_entries(self, owner: str) -> str:
        """The items of an owner, by path and key."""
        return f"{self.root}its:{owner}"

    def item_expiries(self, owner: str) -> str:
        return f"{self.root}itx:{owner}"

    def item_paths(self, owner: str) -> str:
        return f"{self.root}itn:{owner}"

    def item_owners(self, tenant: str) -> str:
        return f"{self.root}ito:{digest('item owners', tenant)}"

    def profile_owner(self, mid: str) -> str:
        return f"{self.root}pfo:{mid}"

    def profiles_of_user(self, user: str) -> str:
        return f"{self.root}pfu:{user}"

    def profile_schemas(self, tenant: str) -> str:
        return f"{self.root}pfx:{digest('profile schema', tenant)}"

    def task(self, tenant: str, task_id: str) -> str:
        return f"{self.root}tk:{digest('task', tenant, task_id)}"

    @property
    def seen(self) -> str:
        return f"{self.root}seen"

    def apart(self, pair: str) -> str:
        return f"{self.root}apart:{pair}"

    def running(self, kind: DueKind, tenant: str) -> str:
        """What a tenant has claimed of a kind; the script that claims makes this name, too."""
        owner = tag(tenant) if kind in (DueKind.MEMORY, DueKind.FOLLOW, DueKind.ITEM) else tenant
        return f"{self.root}run:{kind}:{sha1(owner.encode(), usedforsecurity=False).hexdigest()}"

    @property
    def wake(self) -> str:
        return f"{self.root}wake"

    def move(self, source: str) -> str:
        return f"{self.root}mv:{source}"

    @property
    def config(self) -> str:
        return f"{self.root}cfg"

    def index(self, name: str) -> str:
        return f"{self.root}ix:{name}"
