"""Add field descriptions to the OpenAPI document, using the models' attribute docstrings."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.abc import InspectLoader
from importlib.util import find_spec
from typing import Any, get_args

from pydantic import BaseModel

from agent_memory_client import models
from agent_memory_client.models.filters import Filter

_COMMON: Mapping[str, str] = {
    "agent_id": "The agent that owns it. Null if there is none.",
    "as_of": "The time that it describes.",
    "created_at": "When it was created.",
    "evidence": "The five latest pieces of evidence.",
    "id": "Its id, for reads and changes.",
    "key": "Its key within the path.",
    "memory_id": "The memory's id.",
    "mimeType": "Its media type, if known.",
    "namespace": "Its namespace. Null if there is none.",
    "next_offset": "The `offset` of the next page. Null on the last page.",
    "notices": "Deviations from the request. Null or omitted if there are none.",
    "op": "The kind of operation in a batch.",
    "path": "Its namespace path.",
    "pitfalls": "Actions that did not work in this situation.",
    "result": "Whether this worked.",
    "score": "How well it worked, from 0 to 1.",
    "session_id": "The session's id.",
    "steps": "The steps, in order.",
    "tokens": "The maximum number of tokens.",
    "tools": "The names of the tools that it uses.",
    "total": "The number of matches on all pages.",
    "type": "The kind of content.",
    "updated_at": "When it last changed.",
    "uri": "The address of the content.",
    "user_id": "The user that owns it. Null if there is none.",
    "when_to_use": "The situation in which to use it.",
}
"""Default descriptions of common fields, by name."""


def describe_fields(document: dict[str, Any]) -> None:
    """Add field descriptions to the schemas in the document."""
    modules = [module for name, module in sys.modules.items() if name.startswith(f"{models.__name__}.")]
    classes = [value for module in modules for value in vars(module).values() if isinstance(value, type)]
    described = {model.__name__: model for model in classes if issubclass(model, BaseModel)}
    for name, schema in document["components"]["schemas"].items():
        # Models used in requests and responses have two schemas.
        model = described.get(name.removesuffix("-Input").removesuffix("-Output"))
        if model is None:
            continue
        texts = descriptions_of(model)
        for field, shape in schema.get("properties", {}).items():
            if field in texts:
                shape["description"] = texts[field]


def descriptions_of(model: type[BaseModel]) -> dict[str, str]:
    """Return descriptions of a model's fields, keyed by their names in JSON."""
    shared: Mapping[str, str] = getattr(model, "shared_descriptions", {})
    texts: dict[str, str] = {**_COMMON, **dict(_of_filters(model)), **shared}
    for base in reversed(model.__mro__):
        if issubclass(base, BaseModel) and base is not BaseModel:
            texts |= _docstrings(base.__module__).get(base.__name__, {})
    return {field.alias or name: texts[name] for name, field in model.model_fields.items() if name in texts}


def _of_filters(model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    for name, field in model.model_fields.items():
        kinds = [kind for kind in get_args(field.annotation) if isinstance(kind, type) and issubclass(kind, Filter)]
        if kinds and kinds[0].__doc__:
            yield name, " ".join(kinds[0].__doc__.split())


@cache
def _docstrings(module: str) -> Mapping[str, Mapping[str, str]]:
    """Return a module's attribute docstrings by class and field.

    The result is empty if the module's source code is not installed.
    """
    spec = find_spec(module)
    source = spec.loader.get_source(module) if spec is not None and isinstance(spec.loader, InspectLoader) else None
    return {node.name: dict(_of_class(node)) for node in ast.parse(source or "").body if isinstance(node, ast.ClassDef)}


def _of_class(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, text in zip(node.body, node.body[1:], strict=False):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                yield name, " ".join(words.split())
            case _:
                pass
