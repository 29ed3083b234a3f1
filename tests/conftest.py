"""What is opened once for the whole session (a real Redis, the local model, the look-alike), and settings that no environment changes."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

import httpx
import hypothesis
import pytest
from redis import Redis
from ulid import ULID

from agent_memory.foundation.core import settings as settings_module
from agent_memory.foundation.core.settings import Settings, load_settings, variables
from agent_memory.foundation.embedded.server import embedded_redis
from agent_memory.foundation.llm.base import EmbeddingModel
from agent_memory.foundation.llm.tokens import TokenCounter
from agent_memory.interfaces.http.app import create_app
from agent_memory.runtime import open_runtime
from tests.support.api import serving
from tests.support.cli import light_model
from tests.support.lookalike import Lookalike
from tests.support.shared.models import RememberingEmbedder, share_models
from tests.support.shared.settings import share_settings
from tests.support.stack import stack

# The same examples in every run of CI: a new find is for a developer's run, which looks at others each time.
hypothesis.settings.register_profile("ci", derandomize=True, deadline=None)
hypothesis.settings.register_profile("here", deadline=None)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "here")

_REDIS_URL = pytest.StashKey[str]()


def pytest_configure() -> None:
    """Forgets the developer's own settings, before anything reads them: the variables and the `.env` beside the project."""
    for name in list(os.environ):
        if name.upper() in variables():
            del os.environ[name]
    # Half the CPU of the default, which the tests of search quality name themselves. TEST_LOCAL_MODEL runs all tests with another one.
    os.environ.update(light_model())
    for group in settings_module.GROUPS.values():
        group.model_config["env_file"] = None
    # Nobody waits for what a conversation may still bring, but those tests that are about it.
    os.environ["NEIGHBOURS_AFTER_SECONDS"] = "0"
    # On a machine that is busy for two seconds a search would go by words alone; what happens then has tests of its own.
    os.environ["QUERY_EMBEDDING_TIMEOUT_SECONDS"] = "15"
    # And a test that stands still between a request's head and its body would be told that it is late.
    os.environ["BODY_TIMEOUT_SECONDS"] = "10"
    share_models()
    share_settings()


@pytest.fixture(scope="session")
async def redis_url(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> AsyncGenerator[str, None]:
    """The URL of an embedded Redis that all tests share; each keeps to a KEY_PREFIX of its own, and it is emptied after each file."""
    async with embedded_redis(tmp_path_factory.mktemp("redis")) as redis:
        pytestconfig.stash[_REDIS_URL] = redis.url
        yield redis.url
        del pytestconfig.stash[_REDIS_URL]


@pytest.fixture(scope="session")
async def lasting_redis_url(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[str, None]:
    """The URL of another one, for the servers that stay for the whole session."""
    async with embedded_redis(tmp_path_factory.mktemp("lasting-redis")) as redis:
        yield redis.url


@pytest.fixture(autouse=True, scope="module")
def _emptied_redis(request: pytest.FixtureRequest) -> Generator[None]:
    """Takes away what a file's tests leave: a new index reads all keys, and a write of any key is held against all indexes."""
    yield
    if url := request.config.stash.get(_REDIS_URL, None):
        with Redis.from_url(url) as client:
            client.flushall()


@pytest.fixture(scope="session")
async def local() -> EmbeddingModel:
    """The real local model, one for all tests of a process."""
    return await RememberingEmbedder.open(load_settings())


@pytest.fixture(scope="session")
async def counter() -> TokenCounter:
    """The token counter."""
    return await TokenCounter.open()


@pytest.fixture(scope="session")
def running_lookalike() -> Generator[Lookalike]:
    """The model server that `lookalike` hands to one test at a time."""
    server = Lookalike().start()
    yield server
    server.stop()


@pytest.fixture
def lookalike(running_lookalike: Lookalike) -> Generator[Lookalike]:
    """A model server without faults."""
    running_lookalike.forget()
    yield running_lookalike
    running_lookalike.forget()
    if not running_lookalike.running:  # a test took it down
        running_lookalike.start()


@pytest.fixture
def make_settings() -> Callable[..., Settings]:
    """Settings with a KEY_PREFIX that no other test has and the local models, changed by what is given."""
    prefix = f"t{str(ULID()).lower()}"

    def make(**given: Any) -> Settings:
        return load_settings(**{"KEY_PREFIX": prefix, "MODEL_PROVIDER": "local", "EMBEDDING_PROVIDER": "local", **given})

    return make


@pytest.fixture
def settings(make_settings: Callable[..., Settings]) -> Settings:
    """`make_settings()` without changes."""
    return make_settings()


@pytest.fixture(scope="session")
async def live_url(lasting_redis_url: str) -> AsyncGenerator[str, None]:
    """The base URL of the real thing: the API over the real runtime, on a loopback port."""
    settings = load_settings(KEY_PREFIX="api-tests", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local")
    async with open_runtime(settings, lasting_redis_url) as runtime, serving(create_app(settings, runtime)) as url:
        yield url


@pytest.fixture(scope="session")
async def live(live_url: str) -> AsyncGenerator[httpx.AsyncClient, None]:
    """A client of the real thing."""
    async with httpx.AsyncClient(base_url=live_url, timeout=30) as client:
        yield client


@pytest.fixture(scope="session")
async def worked(lasting_redis_url: str) -> AsyncGenerator[httpx.AsyncClient, None]:
    """A client of the real thing with a worker beside it."""
    settings = load_settings(KEY_PREFIX="api-worked", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local")
    async with stack(settings, lasting_redis_url) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        yield client


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks as `quick` what needs no Redis, and what a user relies on first; and puts the slow files first: at the end no process waits
    for the other's last long file."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
    for item in items:
        with_redis = {"redis_url", "lasting_redis_url"}.intersection(getattr(item, "fixturenames", ()))
        if not item.get_closest_marker("slow") and (not with_redis or item.path.parent.name == "fundamentals"):
            item.add_marker("quick")
