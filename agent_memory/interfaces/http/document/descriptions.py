"""Descriptions of fields in the OpenAPI document, from the attribute docstrings of models.

Read from source when the document is made: starts and requests stay fast, and MCP schemas small.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.abc import InspectLoader
from importlib.util import find_spec
from typing import Any

from pydantic import BaseModel

from agent_memory_client import models


def describe_fields(document: dict[str, Any]) -> None:
    """Add the descriptions to the document's schemas."""
    modules = [module for name, module in sys.modules.items() if name.startswith(f"{models.__name__}.")]
    classes = [value for module in modules for value in vars(module).values() if isinstance(value, type)]
    described = {model.__name__: model for model in classes if issubclass(model, BaseModel)}
    for name, schema in document["components"]["schemas"].items():
        # Models used in both directions have two schemas.
        model = described.get(name.removesuffix("-Input").removesuffix("-Output"))
        if model is None:
            continue
        texts = descriptions_of(model)
        for field, shape in schema.get("properties", {}).items():
            if field in texts:
                shape["description"] = texts[field]


def descriptions_of(model: type[BaseModel]) -> dict[str, str]:
    """Return a model's descriptions by wire name."""
    shared: Mapping[str, str] = getattr(model, "shared_descriptions", {})
    texts: dict[str, str] = dict(shared)
    for base in reversed(model.__mro__):
        if issubclass(base, BaseModel) and base is not BaseModel:
            texts |= _docstrings(base.__module__).get(base.__name__, {})
    return {field.alias or name: texts[name] for name, field in model.model_fields.items() if name in texts}


@cache
def _docstrings(module: str) -> Mapping[str, Mapping[str, str]]:
    """Empty for a module installed without source."""
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
