"""Pure request builders: what every method sends. They know the client's defaults and nothing of HTTP's mechanics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias
from urllib.parse import quote

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from agent_memory_client.config import MemoryClientConfig
from agent_memory_client.errors import MemoryValidationError
from agent_memory_client.models import (
    AppendMessagesRequest,
    CreateSummaryViewRequest,
    ForgetPolicy,
    MemoryMessage,
    MemoryPromptRequest,
    MemoryRecord,
    RecencyConfig,
    SearchRequest,
    SessionIdentifier,
    WorkingMemory,
    new_id,
)

Method: TypeAlias = Literal["GET", "PUT", "POST", "PATCH", "DELETE"]
Query: TypeAlias = Mapping[str, str | Sequence[str]]

Wait: TypeAlias = bool | float | None
"""How long the server may hold its answer back until the background work is done: seconds (up to 20), True for up to 10."""

MessageWait: TypeAlias = Wait | Literal["promoted", "searchable"]
"""As `Wait`, or until which stage messages are waited for, up to 10 seconds; seconds and True mean "searchable"."""

IDEMPOTENCY_KEY = "Idempotency-Key"
MAX_KEY_CHARS = 255
WAIT_SECONDS = 10.0
"""What `wait=True` means to the server."""
COMPACTION_SECONDS = 20.0
"""How long the server waits for a compaction before it answers that it goes on."""
MAX_QUERY_CHARS = 4096
"""How long the query of one delete may become: servers refuse request lines beyond 8 to 64 KiB."""

_SESSION_ID: TypeAdapter[str] = TypeAdapter(SessionIdentifier)
_SESSION_TIMES = ("created_at", "updated_at", "last_accessed")


@dataclass(frozen=True, slots=True)
class Call:
    """One request. `json` None sends no body (or `lines`); `idempotent` says that sending it twice has the effect of sending it once.

    `wait` is how many seconds the server was asked to hold its answer back.
    """

    method: Method
    path: str
    params: Query = field(default_factory=dict[str, str])
    json: dict[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    idempotent: bool = True
    wait: float = 0.0
    lines: bytes | None = None


def jsonable(value: Any) -> Any:
    """`value` as plain JSON data; models without their None fields. Raises MemoryValidationError for what JSON cannot say."""
    try:
        return to_jsonable_python(value, exclude_none=True, by_alias=True)
    except ValueError as error:
        raise MemoryValidationError(f"the request cannot be sent as JSON: {error}") from error


def checked(error: ValidationError) -> MemoryValidationError:
    """pydantic's refusal as ours: one line that names the fields and the fixes."""
    problems = (f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}".removeprefix(": ") for problem in error.errors(include_url=False))
    return MemoryValidationError("; ".join(problems))


def messages_of(messages: Sequence[Mapping[str, Any] | MemoryMessage]) -> list[MemoryMessage]:
    """Messages as models, in whatever form chat APIs have them; of our own fields in a mapping, None counts as not given."""
    try:
        return [message if isinstance(message, MemoryMessage) else MemoryMessage.model_validate(_given(message)) for message in messages]
    except ValidationError as error:
        raise checked(error) from error
    except AttributeError as error:
        raise MemoryValidationError("messages: give each as a mapping with 'role' and 'content' or as a MemoryMessage") from error


_OURS = frozenset({"id", "created_at", "persisted_at", "discrete_memory_extracted"})


def _given(message: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in message.items() if value is not None or key not in _OURS}


def message_body(message: MemoryMessage) -> dict[str, Any]:
    """A message as it is sent: without our own fields that have no value, and with its own fields also where they are null."""
    return jsonable(message) | {name: None for name, value in message.own_fields.items() if value is None}


def _session_path(session_id: str) -> str:
    try:
        return f"/v1/working-memory/{quote(_SESSION_ID.validate_python(session_id), safe='')}"
    except ValidationError as error:
        raise MemoryValidationError(f"session_id: {error.errors()[0]['msg']}") from error


def segment(name: str, value: str) -> str:
    """`value` as one segment of a path."""
    if not value:
        raise MemoryValidationError(f"{name}: must not be empty")
    return quote(value, safe="").replace(".", "%2E") if value in (".", "..") else quote(value, safe="")


def _query(**values: Any) -> dict[str, str]:
    """The query parameters that are given, as text."""
    given = {key: str(to_jsonable_python(value)) for key, value in values.items() if value is not None}
    return {key: text.lower() if isinstance(values[key], bool) else text for key, text in given.items()}


def _once(key: str | None = None) -> dict[str, str]:
    """The header that makes a POST safe to repeat: under one key the server carries out one request, and answers it again."""
    if key is not None and not (0 < len(key) <= MAX_KEY_CHARS and key.isascii() and key.isprintable()):
        raise MemoryValidationError(f"idempotency_key: must be 1 to {MAX_KEY_CHARS} printable ASCII characters")
    return {IDEMPOTENCY_KEY: new_id() if key is None else key}


def seconds_of(wait: Wait) -> float:
    if wait is True:
        return WAIT_SECONDS
    if wait is not None and not 0 <= wait < float("inf"):
        raise MemoryValidationError(f"wait: must be seconds, True or False, got {wait}")
    return float(wait or 0.0)


def _message_seconds(wait: MessageWait) -> float:
    if not isinstance(wait, str):
        return seconds_of(wait)
    if wait not in ("promoted", "searchable"):
        raise MemoryValidationError(f"wait: must be promoted, searchable, seconds, True or False, got {wait!r}")
    return WAIT_SECONDS


def _filter(value: Any) -> Any:
    """A filter as JSON; its `field` is implied by where it stands."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_none=True, exclude={"field", "enum_class"})
    return jsonable(value)


_FILTERS = (
    "session_id",
    "namespace",
    "topics",
    "entities",
    "created_at",
    "last_accessed",
    "user_id",
    "memory_type",
    "extraction_strategy",
    "event_date",
)


class Calls:
    """Builds the requests of a client with the defaults of `config`."""

    def __init__(self, config: MemoryClientConfig) -> None:
        self._config = config

    def namespace(self, namespace: str | None) -> str | None:
        """`namespace`, or the client's default."""
        return namespace if namespace is not None else self._config.default_namespace

    def window(self, model_name: str | None, context_window_max: int | None) -> dict[str, Any]:
        """The model and its window, or the client's defaults, without what is not given (0 counts as not given)."""
        values = {
            "model_name": model_name or self._config.default_model_name,
            "context_window_max": context_window_max or self._config.default_context_window_max,
        }
        return {key: value for key, value in values.items() if value is not None}

    def health(self) -> Call:
        return Call("GET", "/v1/health")

    def ready(self) -> Call:
        return Call("GET", "/v1/ready", idempotent=False)

    def list_sessions(self, limit: int, offset: int, namespace: str | None, user_id: str | None) -> Call:
        params = _query(limit=limit, offset=offset, namespace=self.namespace(namespace), user_id=user_id)
        return Call("GET", "/v1/working-memory/", params)

    def get_session(
        self,
        session_id: str,
        user_id: str | None,
        namespace: str | None,
        window: Mapping[str, Any] | None = None,
        recent_messages_limit: int | None = None,
    ) -> Call:
        scope = {"namespace": self.namespace(namespace), "user_id": user_id}
        return Call("GET", _session_path(session_id), _query(**scope, **(window or {}), recent_messages_limit=recent_messages_limit))

    def put_session(
        self, session_id: str, memory: WorkingMemory, user_id: str | None, window: Mapping[str, Any], condition: Mapping[str, str]
    ) -> Call:
        """`condition` is a header such as `If-Match`. The session's own times are sent only if somebody set them."""
        made_up = {name for name in _SESSION_TIMES if name not in memory.model_fields_set}
        include = set(WorkingMemory.model_fields) - made_up
        body: dict[str, Any] = memory.model_dump(mode="json", exclude_none=True, by_alias=True, include=include)
        body["messages"] = [message_body(message) for message in memory.messages]
        body["session_id"] = session_id
        namespace = self.namespace(memory.namespace)
        if namespace is not None:
            body["namespace"] = namespace
        if user_id is not None:
            body["user_id"] = user_id
        return Call("PUT", _session_path(session_id), _query(user_id=user_id, **window), body, condition)

    def append(
        self,
        session_id: str,
        messages: Sequence[Mapping[str, Any] | MemoryMessage],
        namespace: str | None,
        user_id: str | None,
        window: Mapping[str, Any],
        wait: MessageWait = None,
    ) -> Call:
        """Safe to repeat: every message carries its id, and the server skips the ids that it has."""
        try:
            request = AppendMessagesRequest(messages=messages_of(messages), namespace=self.namespace(namespace), user_id=user_id, **window)
        except ValidationError as error:
            raise checked(error) from error
        body = jsonable(request) | {"messages": [message_body(message) for message in request.messages]}
        path = f"{_session_path(session_id)}/messages"
        return Call("POST", path, _query(wait=wait), body, wait=_message_seconds(wait))

    def delete_session(
        self, session_id: str, namespace: str | None, user_id: str | None, memories: bool = False, wait: Wait = None
    ) -> Call:
        scope = _query(namespace=self.namespace(namespace), user_id=user_id)
        return Call("DELETE", _session_path(session_id), {**scope, **_query(memories=memories or None, wait=wait)}, wait=seconds_of(wait))

    def flush_session(self, session_id: str, namespace: str | None, user_id: str | None, wait: Wait) -> Call:
        params = _query(namespace=self.namespace(namespace), user_id=user_id, wait=wait)
        return Call("POST", f"{_session_path(session_id)}/flush", params, headers=_once(), wait=seconds_of(wait))

    def delete_user(self, user_id: str, namespace: str | None, wait: Wait) -> Call:
        """The default namespace does not count: "all of this user" must mean all."""
        params = _query(namespace=namespace, wait=wait)
        return Call("DELETE", f"/v1/users/{segment('user_id', user_id)}", params, wait=seconds_of(wait))

    def create_memories(
        self, memories: Sequence[MemoryRecord], deduplicate: bool, wait: Wait = None, idempotency_key: str | None = None
    ) -> Call:
        """Safe to repeat: every record carries its id, and the request its key."""
        records = [record if record.id else record.model_copy(update={"id": new_id()}) for record in memories]
        bodies: list[dict[str, Any]] = [record.model_dump(mode="json", exclude_none=True, by_alias=True) for record in records]
        namespace = self._config.default_namespace
        for body in bodies:
            if namespace is not None:
                body.setdefault("namespace", namespace)
        body = {"memories": bodies, "deduplicate": deduplicate}
        headers = _once(idempotency_key)
        return Call("POST", "/v1/long-term-memory/", _query(wait=wait), body, headers, wait=seconds_of(wait))

    def get_memory(self, memory_id: str, **asked: Any) -> Call:
        return Call("GET", f"/v1/long-term-memory/{segment('memory_id', memory_id)}", _query(**asked))

    def edit_memory(self, memory_id: str, updates: Mapping[str, Any]) -> Call:
        """Safe to repeat: it sets fields to values."""
        return Call("PATCH", f"/v1/long-term-memory/{segment('memory_id', memory_id)}", json=jsonable(dict(updates)))

    def delete_memories(self, memory_ids: Sequence[str]) -> list[Call]:
        """As many requests as it takes to keep every query short; one for no ids."""
        batches: list[list[str]] = [[]]
        length = 0
        for memory_id in memory_ids:
            cost = len(quote(memory_id, safe="")) + len("memory_ids=&")
            if batches[-1] and length + cost > MAX_QUERY_CHARS:
                batches.append([])
                length = 0
            batches[-1].append(memory_id)
            length += cost
        return [Call("DELETE", "/v1/long-term-memory", {"memory_ids": batch}) for batch in batches]

    def forget(
        self,
        policy: ForgetPolicy,
        namespace: str | None,
        user_id: str | None,
        session_id: str | None,
        limit: int | None,
        dry_run: bool,
        pinned_ids: Sequence[str] | None,
    ) -> Call:
        """Under its key a repeat reports what the first attempt forgot."""
        body: dict[str, Any] = {"policy": policy.model_dump(mode="json", exclude_none=True)}
        if pinned_ids:
            body["pinned_ids"] = list(pinned_ids)
        params = _query(namespace=namespace, user_id=user_id, session_id=session_id, limit=limit, dry_run=dry_run)
        return Call("POST", "/v1/long-term-memory/forget", params, body, _once())

    def search_body(self, filters: Mapping[str, Any], recency: RecencyConfig | None = None, **values: Any) -> dict[str, Any]:
        """The body of a search: filters (models or mappings; the default namespace if none is given) and plain values."""
        body: dict[str, Any] = {key: jsonable(value) for key, value in values.items() if value is not None}
        body.update({key: _filter(value) for key, value in filters.items() if value is not None})
        if "namespace" not in body and self._config.default_namespace is not None:
            body["namespace"] = {"eq": self._config.default_namespace}
        for key, value in (recency.model_dump(exclude_none=True) if recency is not None else {}).items():
            plain = key in ("recency_boost", "server_side_recency")
            body[key if plain else f"recency_{key}"] = value
        return body

    def search(self, body: dict[str, Any], optimize_query: bool) -> Call:
        return Call("POST", "/v1/long-term-memory/search", _query(optimize_query=optimize_query), body)

    def explain(
        self,
        memory_id: str,
        search: SearchRequest | Mapping[str, Any] | None = None,
        prompt: MemoryPromptRequest | Mapping[str, Any] | None = None,
    ) -> Call:
        if prompt is not None:
            asked = jsonable(prompt if isinstance(prompt, MemoryPromptRequest) else dict(prompt))
            return Call("POST", "/v1/long-term-memory/explain", json={"memory_id": memory_id, "prompt": asked})
        body = jsonable(search if isinstance(search, SearchRequest) else dict(search or {}))
        if "namespace" not in body and self._config.default_namespace is not None:
            body["namespace"] = {"eq": self._config.default_namespace}
        return Call("POST", "/v1/long-term-memory/explain", json={"memory_id": memory_id, "search": body})

    def compact(self, namespace: str | None, user_id: str | None) -> Call:
        params = _query(namespace=namespace, user_id=user_id)
        return Call("POST", "/v1/long-term-memory/compact", params, headers=_once(), wait=COMPACTION_SECONDS)

    def prompt(
        self,
        query: str,
        session_id: str | None,
        namespace: str | None,
        user_id: str | None,
        window: Mapping[str, Any],
        long_term_search: Mapping[str, Any] | SearchRequest | bool | None,
        optimize_query: bool,
    ) -> Call:
        body: dict[str, Any] = {"query": query}
        scope = self.namespace(namespace)
        if session_id is not None:
            session = {"session_id": session_id, "namespace": scope, "user_id": user_id, **window}
            body["session"] = {key: value for key, value in session.items() if value is not None}
        if isinstance(long_term_search, bool):
            body["long_term_search"] = long_term_search
        elif long_term_search is not None:
            search: dict[str, Any] = jsonable(long_term_search if isinstance(long_term_search, SearchRequest) else dict(long_term_search))
            if "namespace" not in search and scope is not None:
                search["namespace"] = {"eq": scope}
            body["long_term_search"] = search
        return Call("POST", "/v1/memory/prompt", _query(optimize_query=optimize_query), body)

    def list_views(self) -> Call:
        return Call("GET", "/v1/summary-views")

    def rules(self, method: Method, namespace: str | None, user_id: str | None, rules: BaseModel | None = None) -> Call:
        params = _query(namespace=namespace, user_id=user_id)
        return Call(method, "/v1/extraction-rules", params, None if rules is None else jsonable(rules))

    def create_view(self, request: CreateSummaryViewRequest) -> Call:
        """Under its key a repeat makes no second view."""
        return Call("POST", "/v1/summary-views", json=jsonable(request), headers=_once())

    def get_view(self, view_id: str) -> Call:
        return Call("GET", f"/v1/summary-views/{segment('view_id', view_id)}")

    def delete_view(self, view_id: str) -> Call:
        return Call("DELETE", f"/v1/summary-views/{segment('view_id', view_id)}")

    def run_partition(self, view_id: str, group: Mapping[str, str]) -> Call:
        return Call("POST", f"/v1/summary-views/{segment('view_id', view_id)}/partitions/run", json={"group": dict(group)}, headers=_once())

    def list_partitions(
        self, view_id: str, namespace: str | None, user_id: str | None, session_id: str | None, memory_type: str | None
    ) -> Call:
        params = _query(namespace=namespace, user_id=user_id, session_id=session_id, memory_type=memory_type)
        return Call("GET", f"/v1/summary-views/{segment('view_id', view_id)}/partitions", params)

    def run_view(self, view_id: str, force: bool) -> Call:
        """Under its key a repeat starts no second run. The task's id is made here, so that a caller knows it before the answer."""
        body: dict[str, Any] = {"task_id": new_id(), **({"force": True} if force else {})}
        return Call("POST", f"/v1/summary-views/{segment('view_id', view_id)}/run", json=body, headers=_once())

    def get_task(self, task_id: str) -> Call:
        return Call("GET", f"/v1/tasks/{segment('task_id', task_id)}")

    def memory_part(self, memory_id: str, part: str) -> Call:
        return Call("GET", f"/v1/long-term-memory/{segment('memory_id', memory_id)}/{part}")

    def list_changes(self, **filters: Any) -> Call:
        return Call("GET", "/v1/changes", _query(**filters))

    def get_change(self, change_id: str) -> Call:
        return Call("GET", f"/v1/changes/{segment('change_id', change_id)}")

    def end_change(self, name: str, how: str, among: str = "") -> Call:
        return Call("POST", f"/v1/changes/{among}{segment('change_id', name)}/{how}", headers=_once())

    def list_operations(self, state: str | None, kind: str | None, limit: int, offset: int) -> Call:
        return Call("GET", "/v1/operations", _query(state=state, kind=kind, limit=limit, offset=offset))

    def get_operation(self, operation_id: str) -> Call:
        return Call("GET", f"/v1/operations/{segment('operation_id', operation_id)}")

    def replay_operation(self, operation_id: str) -> Call:
        return Call("POST", f"/v1/operations/{segment('operation_id', operation_id)}/replay", headers=_once())

    def drop_operation(self, operation_id: str) -> Call:
        """Sent once: a second drop of the same operation is refused, which would look as if the first one had failed."""
        return Call("DELETE", f"/v1/operations/{segment('operation_id', operation_id)}", idempotent=False)
