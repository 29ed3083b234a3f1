"""Find the client methods that send HTTP requests, and record which ones a program calls.

This runs in the archived client's environment, so it imports nothing from this project.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import httpx

VERBS = {"get", "post", "put", "patch", "delete", "request", "send", "stream"}
_caller: ContextVar[str | None] = ContextVar("caller", default=None)


def talking(client_class: type[Any]) -> list[str]:
    """Return a class's public methods that send requests, directly or indirectly."""
    methods = {name: found for name, found in vars(client_class).items() if inspect.isfunction(found)}
    uses = {name: _uses(found) for name, found in methods.items()}
    found = {name for name, (sends, _) in uses.items() if sends}
    while more := {name for name, (_, called) in uses.items() if called & found} - found:
        found |= more
    return sorted(name for name in found if not name.startswith("_"))


def _uses(method: Callable[..., Any]) -> tuple[bool, set[str]]:
    """Return whether a method sends a request, and which attributes of `self` it uses."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(method)))
    sends, named = False, set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            inner = node.value
            if isinstance(inner, ast.Name) and inner.id == "self":
                named.add(node.attr)
            elif isinstance(inner, ast.Attribute) and inner.attr == "_client" and node.attr in VERBS:
                sends = True
    return sends, named


class Watch:
    """Counts the requests sent by each client method that the program calls."""

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()

    def watched(self, client_class: type[Any]) -> type[Any]:
        """Return a subclass that counts calls to methods that send requests."""
        return type(client_class.__name__, (client_class,), {name: self._wrapped(client_class, name) for name in talking(client_class)})

    def listen(self, client: httpx.AsyncClient) -> None:
        """Count the requests that an HTTP client sends."""

        async def count(request: httpx.Request) -> None:
            if (name := _caller.get()) is not None:
                self.requests[name] += 1

        client.event_hooks = {"request": [count], "response": []}

    def _wrapped(self, client_class: type[Any], name: str) -> Callable[..., Any]:
        inner = getattr(client_class, name)

        async def call(*arguments: Any, **keywords: Any) -> Any:
            if _caller.get() is not None:
                return await inner(*arguments, **keywords)
            token = _caller.set(name)
            try:
                return await inner(*arguments, **keywords)
            finally:
                _caller.reset(token)

        async def iterate(*arguments: Any, **keywords: Any) -> Any:
            token = _caller.set(name)
            found = [item async for item in inner(*arguments, **keywords)]
            _caller.reset(token)
            for item in found:
                yield item

        return iterate if inspect.isasyncgenfunction(inner) else call
