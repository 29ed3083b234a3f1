"""Routes that FastAPI documents and we run: each argument is read once, the body is validated once, straight from its bytes.

FastAPI builds the OpenAPI document from an endpoint's signature. At run time its own argument solver would cost more than the rest of a
request (a json.loads and a second pass, about 10 µs per query parameter, a thread per plain dependency), so an `Operation` reads the same
signature once, at start, and makes a plan of it. Every parameter says in its annotation where it comes from: `Path`, `Query`, `Header`,
`Body`, or `Depends` on a function of the request, plain or async.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Collection, Sequence
from inspect import Parameter, iscoroutinefunction, signature
from typing import Any, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl, unquote_to_bytes

from fastapi import APIRouter, Request, Response, params
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, create_model
from pydantic_core import SchemaValidator, from_json
from starlette.requests import ClientDisconnect
from starlette.routing import compile_path, get_name
from starlette.types import Receive, Scope, Send

from agent_memory.api.deps import scope_of
from agent_memory.api.errors import MAX_PROBLEMS, BodyTooLarge, UnsupportedMedia, broken_json, invalid, unknown
from agent_memory.api.idempotency import answered_once, key_of
from agent_memory.bounds import MAX_LIST_ITEMS, check_lists
from agent_memory.errors import BadInput
from agent_memory.known_fields import SCOPE_FIELDS, FieldCheck, Unknown, UnknownFields, narrowing_nothing, narrows, nearest, shown


class RawBody(bytes):
    """A body that an operation reads by itself: a request under an Idempotency-Key is the same one only with the same body."""


ARGUMENTS = "agent_memory.arguments"
"""Where an ASGI scope holds the arguments of the operation that runs."""
ANSWER = "agent_memory.answer"
"""Where it holds the operation's response."""
IGNORED = "agent_memory.ignored_fields"
"""Where it holds the fields of the request that nobody knows."""
MAX_QUERY_FIELDS = 2000
MAX_EXPLAINED_BYTES = 256 * 1024
# Computes a summary anew, whose text must not be kept beside the summary itself.
_COMPUTED = frozenset({"run_summary_view_partition"})
_MARKS = (params.Param, params.Body, params.Depends)
_DELETING: set[Callable[..., Any]] = set()
# What clients of the archived server send with what deletes, where it never meant anything: their namespace, beside the ids.
_SENT_ALONG = {"delete_long_term_memory": frozenset({"namespace"})}

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


class Operation(APIRoute):
    """One operation. Its endpoint returns a Response; `response_model` only documents it. A trailing slash in the URL changes nothing.

    At start there is only what requests need. FastAPI's own part, some ten models for each route from which the OpenAPI document is
    written, costs a tenth of the start: it is made when one of its attributes is asked for, with the first look at the document.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], *, methods: Collection[str] | None = None, **options: Any) -> None:
        self._options: dict[str, Any] | None = {**options, "methods": methods}
        self.path, self.endpoint, self.include_in_schema = path, endpoint, options.get("include_in_schema", True)
        self.name = options.get("name") or get_name(endpoint)
        self.methods = {method.upper() for method in methods or ("GET",)}
        _, self.path_format, self.param_convertors = compile_path(path)
        self.path_regex, last = _either_slash(path)
        self._plan = _Plan(endpoint, last, deletes="DELETE" in (methods or ()) or endpoint in _DELETING)
        self.app = self._serve

    def __getattr__(self, name: str) -> Any:
        """What FastAPI documents an operation by. Raises AttributeError for what it does not know."""
        options = self.__dict__.get("_options")
        if options is None or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(f"{type(self).__name__} has no attribute {name}")
        self._options = None
        ours = {"path_regex": self.path_regex, "app": self.app}
        super().__init__(self.path, self.endpoint, **options)
        self.__dict__ |= ours
        return getattr(self, name)

    def get_route_handler(self) -> Callable[[Request], Any]:
        """What FastAPI would run by itself: the same plan."""
        return self._plan.respond

    async def answer(self, request: Request) -> Response:
        """The response to a request whose scope has the path's parameters. Raises what `respond` does, and the endpoint's errors."""
        response = request.scope[ANSWER] = await self._plan.respond(request)
        if (ignored := request.scope.get(IGNORED)) is not None:
            response.raw_headers = [*response.raw_headers, (b"x-ignored-fields", shown(ignored).encode())]
        return response

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (await self.answer(Request(scope, receive)))(scope, receive, send)


def deleting(endpoint: Endpoint) -> Endpoint:
    """Marks an endpoint that deletes though its method is not DELETE: a parameter that would narrow what goes must mean something."""
    _DELETING.add(endpoint)
    return endpoint


def operations(tag: str) -> APIRouter:
    """A router whose routes are operations."""
    return APIRouter(tags=[tag], route_class=Operation)


def _either_slash(path: str) -> tuple[re.Pattern[str], str | None]:
    """A pattern that takes `path` with and without a trailing slash, and the name of the parameter that the path ends with, if any.

    `{name:path}` takes anything, also line breaks (an id with one must be refused by name, not by a 404) and nothing at all.
    """
    pattern, at, last = "", 0, None
    trimmed = path.rstrip("/")
    for found in re.finditer(r"{(\w+)(:path)?}", trimmed):
        taken = r"[\s\S]*?" if found[2] else "[^/]+"
        pattern += re.escape(trimmed[at : found.start()]) + f"(?P<{found[1]}>{taken})"
        at, last = found.end(), found[1]
    return re.compile(f"{pattern}{re.escape(trimmed[at:])}/?\\Z"), last if at == len(trimmed) else None


class _Plan:
    """How one endpoint's arguments are read."""

    def __init__(self, endpoint: Callable[..., Awaitable[Response]], last: str | None, *, deletes: bool) -> None:
        self._endpoint = endpoint
        self._last = last
        self._deletes = deletes
        self._elsewhere: frozenset[str] = frozenset()
        self._places: dict[str, str] = {}
        self._headers: dict[bytes, str] = {}
        self._lists: set[str] = set()
        self._body: tuple[str, SchemaValidator, FieldCheck] | None = None
        self._providers: list[tuple[str, Callable[[Request], Any], bool]] = []
        fields: dict[str, Any] = {}
        hints = get_type_hints(endpoint, include_extras=True)
        for name, parameter in signature(endpoint).parameters.items():
            hint = hints[name]
            marks = (item for item in getattr(hint, "__metadata__", ()) if isinstance(item, _MARKS))
            source = next(marks, None)
            if isinstance(source, params.Depends):
                assert source.dependency is not None
                self._providers.append((name, source.dependency, iscoroutinefunction(source.dependency)))
            elif isinstance(source, params.Body):
                self._body = name, _validator(hint), FieldCheck(hint)
                self._elsewhere = SCOPE_FIELDS & getattr(get_args(hint)[0], "model_fields", {}).keys()
            elif isinstance(source, params.Param):
                fields[name] = (hint, ... if parameter.default is Parameter.empty else parameter.default)
                self._declare(name, hint, source)
            else:
                raise TypeError(f"{endpoint.__name__}: parameter {name} does not say where it comes from")
        model = create_model(f"{endpoint.__name__}_inputs", __config__=ConfigDict(validate_by_name=True, validate_by_alias=False), **fields)
        self._inputs = model if fields else None
        self._defaults = _defaults_of(model)
        # What was read must not be kept where an erasure would not know of it: the same read under its key is read again.
        reads = any(provide is scope_of for _, provide, _ in self._providers)
        self._keeps = not reads and endpoint.__name__ not in _COMPUTED

    def _declare(self, name: str, hint: Any, source: params.Param) -> None:
        self._places[name] = place = source.in_.value
        if place == "header":
            self._headers[(source.alias or name.replace("_", "-")).lower().encode()] = name
        inner = get_args(hint)[0]
        if get_origin(inner) is list:
            self._lists.add(name)

    async def respond(self, request: Request) -> Response:
        """Reads the arguments and calls the endpoint. Raises RequestValidationError and the errors of `read_body`."""
        scope = request.scope
        arguments = self._read_inputs(scope) if self._inputs is not None else {}
        for name, provide, is_async in self._providers:
            arguments[name] = await provide(request) if is_async else provide(request)
        raw = b""
        if self._body is not None:
            name, validator, fields = self._body
            raw = await read_body(scope, request.receive)
            arguments[name] = self._read_body(scope, validator, fields, raw)
        scope[ARGUMENTS] = arguments
        key = key_of(scope)
        if key is None or "runtime" not in arguments:
            return await self._endpoint(**arguments)
        raw = next((value for value in arguments.values() if isinstance(value, RawBody)), raw)
        runtime, who, keeps = arguments["runtime"], arguments["scope"], self._keeps
        return await answered_once(runtime, who, key, scope, raw, lambda: self._endpoint(**arguments), keeps=keeps)

    def _read_body(self, scope: Scope, validator: SchemaValidator, fields: FieldCheck, raw: bytes) -> Any:
        """The body; its fields that are not known are noted. Raises RequestValidationError."""
        if len(raw) > MAX_LIST_ITEMS and raw.count(b",") >= MAX_LIST_ITEMS:
            _check_lists(raw)
        try:
            value, ignored = fields.read(lambda check: check.validate_json(raw), strict=_is_strict(scope))
        except UnknownFields as refused:
            raise unknown(refused, "body") from None
        except ValidationError as error:
            raise _refusal(validator, raw, error) from None
        if ignored:
            self._note(scope, ignored, "body")
        return value

    def _note(self, scope: Scope, ignored: Sequence[Unknown], place: str) -> None:
        """Keeps what is ignored for the answer. Raises RequestValidationError for what would have narrowed what is deleted."""
        sent_along = _SENT_ALONG.get(self._endpoint.__name__, ())
        if self._deletes and (lost := [narrowing_nothing(one) for one in ignored if narrows(one) and one.path[-1] not in sent_along]):
            raise unknown(UnknownFields(lost), place)
        scope.setdefault(IGNORED, []).extend(ignored)

    def _read_inputs(self, scope: Scope) -> dict[str, Any]:
        values: dict[str, Any] = dict(scope["path_params"])
        if values and scope["path"].endswith("/"):
            self._restore_slash(scope, values)
        if scope["query_string"]:
            self._read_query(scope, values)
        elif self._defaults is not None and not values and not self._headers:
            return self._defaults.copy()
        if self._headers:
            for name, value in scope["headers"]:
                if name in self._headers:
                    values[self._headers[name]] = value.decode("latin-1")
        for name, value in values.items():
            if "\ufffd" in value:
                self._check_utf8(scope, name)
        assert self._inputs is not None
        try:
            return self._inputs.__pydantic_validator__.validate_python(values).__dict__
        except ValidationError as error:
            raise invalid(error, self._place) from None

    def _place(self, name: str) -> str:
        return self._places.get(name, "query")

    def _restore_slash(self, scope: Scope, values: dict[str, Any]) -> None:
        """A trailing `%2F` belongs to the id; only a literal slash is the other form of the path."""
        if self._last in values and scope.get("raw_path", b"").lower().endswith(b"%2f"):
            values[self._last] += "/"

    def _read_query(self, scope: Scope, values: dict[str, Any]) -> None:
        try:
            pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True, max_num_fields=MAX_QUERY_FIELDS)
        except ValueError:
            message = f"must have at most {MAX_QUERY_FIELDS} parameters: send several requests"
            raise BadInput(message, field="query", where="query") from None
        others: list[str] = []
        for name, value in pairs:
            if self._places.get(name) != "query":
                others.append(name)
            elif self._deletes and not value and name in SCOPE_FIELDS:
                raise BadInput(
                    "must not be empty: that would not narrow what is deleted; name one, or leave it out", field=name, where="query"
                )
            elif name in self._lists:
                values.setdefault(name, []).append(value)
            else:
                values[name] = value
        if others:
            self._check_others(scope, others)

    def _check_others(self, scope: Scope, names: Sequence[str]) -> None:
        """Parameters that the operation does not know. Raises RequestValidationError for those that nearly say whose data is meant."""
        here = frozenset(name for name, place in self._places.items() if place == "query")
        found = [Unknown((name,), nearest(name, here | self._elsewhere) if name not in self._places else None) for name in names]
        refused = [
            Unknown(one.path, f"{one.meant} in the body") if one.meant in self._elsewhere - here else one
            for one in found
            if one.meant is not None or _is_strict(scope)
        ]
        if refused:
            raise unknown(UnknownFields(refused), "query")
        self._note(scope, found, "query")

    def _check_utf8(self, scope: Scope, name: str) -> None:
        """Percent-decoding replaces bad bytes by U+FFFD: two different ids must not become one."""
        place = self._place(name)
        raw = scope["query_string"].replace(b"+", b" ") if place == "query" else scope.get("raw_path", b"")
        try:
            unquote_to_bytes(raw).decode()
        except UnicodeDecodeError:
            raise BadInput("must be percent-encoded UTF-8", field=name, where=place) from None


def _is_strict(scope: Scope) -> bool:
    return scope["app"].state.settings.server.strict_fields


def _defaults_of(model: type[BaseModel]) -> dict[str, Any] | None:
    """What arguments are when none is given; None where one must be, or where they cannot be shared by all who give none."""
    try:
        values = vars(model.model_validate({}))
    except ValidationError:
        return None
    return None if any(isinstance(value, list | dict | set) for value in values.values()) else values


def _validator(hint: Any) -> SchemaValidator:
    """The compiled validator of a body; TypeAdapter's own may be a wrapper that builds it later."""
    validator = TypeAdapter(hint).validator
    assert isinstance(validator, SchemaValidator)
    return validator


def _refusal(validator: SchemaValidator, body: bytes, error: ValidationError) -> RequestValidationError:
    """What is answered to a body that does not fit: it names the field, and never echoes the input."""
    if error.error_count() == 1 and (only := error.errors(include_url=False, include_input=False)[0])["type"] == "json_invalid":
        return _explained(validator, body, str(only["msg"]).removeprefix("Invalid JSON: "))
    return invalid(error, "body")


def _check_lists(body: bytes) -> None:
    """Refuses a list that is too long before validation goes through it."""
    try:
        value = from_json(body)
    except ValueError:
        return  # validation says what is wrong
    check_lists(value, "body")


def _explained(validator: SchemaValidator, body: bytes, reason: str) -> RequestValidationError:
    """The error for a body that is not JSON. Python's parser lets lone surrogates through: then the model can say which field has them."""
    if len(body) <= MAX_EXPLAINED_BYTES and ("hex escape" in reason or "surrogate" in reason):
        try:
            validator.validate_python(json.loads(body))
        except ValidationError as error:
            kinds = {found["type"] for found in error.errors(include_input=False)} if error.error_count() <= MAX_PROBLEMS else set[str]()
            if "string_surrogates" in kinds:
                return invalid(error, "body")
        except (ValueError, RecursionError):
            pass
    return broken_json(reason)


async def read_body(scope: Scope, receive: Receive, media_type: str = "application/json") -> bytes:
    """The whole body, at most `MAX_BODY_BYTES` of it.

    Raises BodyTooLarge as soon as the limit is passed (at once when the length is declared), UnsupportedMedia for a body that is not
    declared as JSON or what else is asked for (a page of another origin could send one without asking), and ClientDisconnect.
    """
    limit: int = scope["app"].state.max_body_bytes
    json_declared = False
    for name, value in scope["headers"]:
        if name == b"content-length":
            # A number of more than 18 digits is beyond every limit, and int() of 5,000 digits raises.
            if len(value) > 18 or (value.isdigit() and int(value) > limit):
                raise BodyTooLarge(limit)
        elif name == b"content-type":
            json_declared = _is_media(value, media_type.encode())
    if not json_declared:
        what = "JSON" if media_type == "application/json" else "lines of JSON"
        message = f"send the body as {what}, with the header Content-Type: {media_type}"
        raise UnsupportedMedia(message, field="content-type", where="header")
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    first: bytes = message.get("body", b"")
    if not message.get("more_body", False) and len(first) <= limit:
        return first
    chunks, size = [first], len(first)
    while message.get("more_body", False) and size <= limit:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk: bytes = message.get("body", b"")
        chunks.append(chunk)
        size += len(chunk)
    if size > limit:
        raise BodyTooLarge(limit)
    return b"".join(chunks)


def _is_media(content_type: bytes, wanted: bytes) -> bool:
    """Whether a content type is the one that is wanted, with or without parameters; for JSON also `application/*+json`."""
    if content_type == wanted:
        return True
    media = content_type.partition(b";")[0].strip().lower()
    return media == wanted or (wanted == b"application/json" and media.startswith(b"application/") and media.endswith(b"+json"))
