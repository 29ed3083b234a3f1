"""What each field of the API's document means: the docstring that stands under the field in its model.

Neither a start nor a request reads them, and the MCP tools' schemas, which a language model reads before its first
turn, do not grow by them: they are taken out of the models' source when the document is made.
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
    """Writes into the document's schemas what their fields mean."""
    modules = [module for name, module in sys.modules.items() if name.startswith(f"{models.__name__}.")]
    classes = [value for module in modules for value in vars(module).values() if isinstance(value, type)]
    described = {model.__name__: model for model in classes if issubclass(model, BaseModel)}
    for name, schema in document["components"]["schemas"].items():
        # A model that is sent and answered in two forms has two schemas.
        model = described.get(name.removesuffix("-Input").removesuffix("-Output"))
        if model is None:
            continue
        texts = descriptions_of(model)
        for field, shape in schema.get("properties", {}).items():
            if field in texts:
                shape["description"] = texts[field]


def descriptions_of(model: type[BaseModel]) -> dict[str, str]:
    """What the fields of a model mean, by their names on the wire."""
    shared: Mapping[str, str] = getattr(model, "shared_descriptions", {})
    texts: dict[str, str] = dict(shared)
    for base in reversed(model.__mro__):
        if issubclass(base, BaseModel) and base is not BaseModel:
            texts |= _docstrings(base.__module__).get(base.__name__, {})
    return {field.alias or name: texts[name] for name, field in model.model_fields.items() if name in texts}


@cache
def _docstrings(module: str) -> Mapping[str, Mapping[str, str]]:
    """The docstrings of the fields of a module's classes. A module that is installed without its source has none."""
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
