"""Call the upstreams configured by the operator.

Callers select an upstream by name, never by address.
"""

from __future__ import annotations

import asyncio
import resource
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx2

from agent_memory.foundation.core.errors import BadInput, NotFound, Overloaded, Unavailable
from agent_memory_client.models.llm import HEADERS

SILENCE_SECONDS = 600.0
"""Seconds that an upstream may stay silent, as in the model providers' SDKs."""
MOST_CALLS = 2048
"""The maximum number of concurrent calls in a process. A tenant may use three quarters of them."""
# A stopping server cancels the remaining calls. They get this long to store the answer so far, before Redis is closed.
_LAST_SECONDS = 4.0
_TIMEOUT = httpx2.Timeout(SILENCE_SECONDS, connect=10.0)
_LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=128, keepalive_expiry=4.0)


class RequestBody(httpx2.AsyncByteStream):
    """A request body for an upstream. `aclose` frees its memory."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __len__(self) -> int:
        return len(self._content)

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        yield self._content

    async def aclose(self) -> None:
        self._content = b""


class Upstreams:
    """Upstreams by name, with the default first. Use the connection pool inside `opened`."""

    def __init__(self, addresses: Mapping[str, str]) -> None:
        self._addresses = addresses
        self._client: httpx2.AsyncClient | None = None
        self._calls = Counter[str]()
        self._idle = asyncio.Event()

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        """Open the connection pool. On exit, wait up to 4 s for calls to finish."""
        if not self._addresses:
            yield
            return
        # A stream takes two descriptors, and many systems start processes with a soft limit of 1,024.
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        # One caller's cookies must not reach the upstream with another caller's request.
        no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=()))
        async with httpx2.AsyncClient(timeout=_TIMEOUT, limits=_LIMITS, cookies=no_cookies, follow_redirects=False) as self._client:
            yield
            if self._calls:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._idle.wait(), _LAST_SECONDS)

    def choose(self, name: str | None) -> str:
        """Return the address of the given upstream, or of the default one.

        Raises NotFound if there are no upstreams, or BadInput for an unknown name.
        """
        if not self._addresses:
            raise NotFound(
                "Not Found: this server does not forward model calls. To enable forwarding, set PROXY_UPSTREAMS=name=https://…/v1"
            )
        if name is not None and name not in self._addresses:
            upstream_names = ", ".join(self._addresses)
            raise BadInput(f"is not an upstream of this server: use one of {upstream_names}", field=HEADERS["upstream"], where="header")
        return self._addresses[name or next(iter(self._addresses))]

    def enter(self, tenant: str) -> Callable[[], None]:
        """Count a call as running until the returned function is called.

        Raises Overloaded if too many calls are running.
        """
        if self._calls.total() >= MOST_CALLS or self._calls[tenant] >= MOST_CALLS * 3 // 4:
            raise Overloaded("too many model calls are in progress: try again")
        self._calls[tenant] += 1
        self._idle.clear()

        def leave() -> None:
            self._calls[tenant] -= 1
            self._calls += Counter()  # drops tenants without calls
            if not self._calls:
                self._idle.set()

        return leave

    async def send(self, url: str, headers: Sequence[tuple[bytes, bytes]], body: RequestBody) -> httpx2.Response:
        """Send a request, and return the response before reading its body.

        Raises BadInput or Unavailable.
        """
        if self._client is None:
            raise Unavailable("the server is starting: try again")
        try:
            # Do not use the client's own `post`, because it adds headers.
            where = httpx2.URL(url)
            own = [(b"host", where.netloc), *headers, (b"content-length", b"%d" % len(body))]
            request = httpx2.Request("POST", where, headers=own, stream=body, extensions={"timeout": _TIMEOUT.as_dict()})
            response = await self._client.send(request, stream=True)
            await body.aclose()
        except (httpx2.InvalidURL, httpx2.LocalProtocolError) as error:
            raise BadInput("cannot be forwarded: HTTP forbids its characters", field="query or headers", where="request") from error
        except httpx2.HTTPError as error:
            raise Unavailable(f"the upstream cannot be reached ({type(error).__name__}): try again") from error
        return response
