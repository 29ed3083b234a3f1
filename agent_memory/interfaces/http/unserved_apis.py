"""Find the APIs in `interfaces/compat`, which are compatible with other products.

Requests to disabled APIs get a 404 response that mentions the setting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.resources import files
from types import ModuleType

from starlette.routing import BaseRoute, Match, Route
from starlette.types import Receive, Scope, Send

from agent_memory.foundation.core.errors import NotFound

# Path prefixes of other products' APIs.
_FOREIGN = ("/v2/", "/v3/", "/v4/", "/ns/", "/api/v1/")


def find_compatible_apis() -> dict[str, ModuleType]:
    """Return the `routes` modules in `interfaces/compat` by product name."""
    folder = files("agent_memory.interfaces").joinpath("compat")
    products = [entry.name for entry in folder.iterdir() if entry.joinpath("routes.py").is_file()] if folder.is_dir() else []
    return {name: import_module(f"agent_memory.interfaces.compat.{name}.routes") for name in sorted(products)}


class UnservedRoutes(BaseRoute):
    """Matches the paths of disabled APIs. This must be the last route."""

    def __init__(self, products: Mapping[str, Sequence[BaseRoute]]) -> None:
        self._patterns = {
            name: [route.path_regex for route in routes if isinstance(route, Route)] for name, routes in products.items() if routes
        }

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] == "http" and (names := self._products(scope["path"])):
            return Match.FULL, {"unserved": names}
        return Match.NONE, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        names = scope["unserved"]
        api = "API of another product" if len(names) > 1 else f"compatible API ({names[0]})"
        choices = " or ".join(f"COMPAT_APIS={name}" for name in names)
        raise NotFound(f"Not Found: this path belongs to the {api} that this server does not serve. To serve it, set {choices}")

    def _products(self, path: str) -> list[str]:
        matching_products = [name for name, patterns in self._patterns.items() if any(pattern.match(path) for pattern in patterns)]
        return matching_products or (list(self._patterns) if path.startswith(_FOREIGN) else [])
