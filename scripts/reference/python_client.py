"""Generate the Python client's reference as Markdown, from its signatures and docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

from agent_memory_client import MemoryClient, MemoryClientConfig, errors
from agent_memory_client.flat_calls import FlatCalls
from agent_memory_client.resources.base import Resource

_INTRODUCTION = """# Python client

For developers who look up a method. [The Python client](clients/client.md) has examples. `SyncMemoryClient` has the same methods,
without `await`. The [API reference](api.md#bodies) describes the fields of requests and responses.
"""
_LONGEST_LINE = 100


def page() -> str:
    return "\n".join(_lines())


def resources() -> dict[str, Resource]:
    """Return the client's resources, sorted by name."""
    client = MemoryClient(MemoryClientConfig(base_url="http://127.0.0.1:8000"))
    return {name: value for name, value in sorted(vars(client).items()) if isinstance(value, Resource)}


def _lines() -> Iterator[str]:
    yield _INTRODUCTION
    yield f"## Configuration\n\n{_text(MemoryClientConfig)}\n\n| field | type | default |\n|---|---|---|"
    for name, field in MemoryClientConfig.model_fields.items():
        default = "required" if field.is_required() else f"`{field.get_default(call_default_factory=True)}`"
        yield f"| `{name}` | `{_name(field.annotation)}` | {default} |".replace(" | None", " \\| None")
    yield f"\n## Client\n\n{_text(MemoryClient)}\n"
    for name, method in methods(MemoryClient):
        if name not in dir(FlatCalls):
            yield from _call("client", name, method)
    for resource, value in resources().items():
        yield f"## client.{resource}\n\n{_text(type(value))}\n"
        for name, method in methods(type(value)):
            yield from _call(f"client.{resource}", name, method)
    yield "## Errors\n"
    for name, error in vars(errors).items():
        if inspect.isclass(error) and issubclass(error, errors.MemoryClientError):
            yield f"- `{name}` ({', '.join(base.__name__ for base in error.__bases__)}): {' '.join(_text(error).split())}"
    names = ", ".join(f"`{name}`" for name, _ in methods(FlatCalls))
    yield f"\n## Names of the archived client\n\nPrograms for the archived client can call these methods of the client: {names}."


def methods(owner: type) -> Iterator[tuple[str, Any]]:
    """Yield an object's public methods. Inherited methods come last."""
    seen: set[str] = set()
    for kind in owner.__mro__[:-1]:
        for name, value in vars(kind).items():
            method = value.__func__ if isinstance(value, staticmethod) else value
            if inspect.isfunction(method) and not name.startswith("_") and name not in seen:
                seen.add(name)
                yield name, method


def _call(owner: str, name: str, method: Any) -> Iterator[str]:
    signature = inspect.signature(method)
    shown = signature.replace(parameters=[parameter for key, parameter in signature.parameters.items() if key != "self"])
    text = f"{name}{shown}".replace("'", "")
    if len(text) > _LONGEST_LINE:
        parameters = "".join(f"    {parameter},\n".replace("'", "") for parameter in _spread(shown))
        text = f"{name}(\n{parameters}){text.rpartition(')')[2]}"
    awaited = "" if inspect.isasyncgenfunction(method) or not inspect.iscoroutinefunction(method) else "await "
    yield f"### {owner}.{name}\n\n```python\n{awaited}{owner}.{text}\n```\n\n{_text(method)}\n"


def _spread(signature: inspect.Signature) -> Iterator[str]:
    """Yield the parameters, with `*` before the first keyword-only parameter."""
    by_keyword = False
    for parameter in signature.parameters.values():
        if parameter.kind == parameter.KEYWORD_ONLY and not by_keyword:
            by_keyword = True
            yield "*"
        yield str(parameter)


def _text(owner: Any) -> str:
    """Return an object's docstring, with double backticks replaced by single ones."""
    return re.sub(r"``([^`]+)``", r"`\1`", inspect.getdoc(owner) or "")


def _name(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).replace(" | ", "` or `")


if __name__ == "__main__":
    print(page())
