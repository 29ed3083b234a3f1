"""Find a request's runtime, for interfaces that serve more than one bucket."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import Depends, Request

from agent_memory.foundation.api.dependencies import home_of, scope_of
from agent_memory.runtime import Runtime


def home_runtime_of(request: Request) -> Runtime:
    """Return the first bucket's runtime. Raises Unavailable before the store is open."""
    return cast("Runtime", home_of(request))


def runtime_of(request: Request) -> Runtime:
    """Return the runtime for the tenant's bucket.

    Raises Unavailable before the store is open. May raise Unauthenticated if there is more than one
    bucket.
    """
    home = home_runtime_of(request)
    return home.of(scope_of(request).tenant) if home.others else home.current


HomeDep = Annotated[Runtime, Depends(home_runtime_of)]
