"""Provide session fixtures such as Redis, the local model and the look-alike."""

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

# CI runs the same examples each time; a developer's run looks for new failures.
hypothesis.settings.register_profile("ci", derandomize=True, deadline=None)
hypothesis.settings.register_profile("here", deadline=None)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "here")

_REDIS_URL = pytest.StashKey[str]()


def pytest_configure() -> None:
    """Ignore the developer's own settings from the environment and `.env`."""
    for name in list(os.environ):
        if name.upper() in variables():
            del os.environ[name]
    # Half the CPU of the default model. Tests of search quality choose the default; TEST_LOCAL_MODEL selects a model for all tests.
    os.environ.update(light_model())
    for group in settings_module.GROUPS.values():
        group.model_config["env_file"] = None
    # Extract at once. Only the tests of debouncing wait for further messages.
    os.environ["NEIGHBOURS_AFTER_SECONDS"] = "0"
    # On a machine busy for two seconds, a search would fall back to keywords; other tests cover that fallback.
    os.environ["QUERY_EMBEDDING_TIMEOUT_SECONDS"] = "15"
    # A test that pauses between a request's head and body would otherwise get a timeout.
    os.environ["BODY_TIMEOUT_SECONDS"] = "10"
    share_models()
    share_settings()


@pytest.fixture(scope="session")
async def redis_url(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> AsyncGenerator[str, None]:
    """Start an embedded Redis that all tests share, emptied after each file, and yield its URL."""
    async with embedded_redis(tmp_path_factory.mktemp("redis")) as redis:
        pytestconfig.stash[_REDIS_URL] = redis.url
        yield redis.url
        del pytestconfig.stash[_REDIS_URL]


@pytest.fixture(scope="session")
async def lasting_redis_url(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[str, None]:
    """Start an embedded Redis for servers that run for the entire session, and yield its URL."""
    async with embedded_redis(tmp_path_factory.mktemp("lasting-redis")) as redis:
        yield redis.url


@pytest.fixture(autouse=True, scope="module")
def _emptied_redis(request: pytest.FixtureRequest) -> Generator[None]:
    """Delete a file's data, because leftover keys and indexes would slow down later tests."""
    yield
    if url := request.config.stash.get(_REDIS_URL, None):
        with Redis.from_url(url) as client:
            client.flushall()


@pytest.fixture(scope="session")
async def local() -> EmbeddingModel:
    """Return the local embedding model that all tests in a process share."""
    return await RememberingEmbedder.open(load_settings())


@pytest.fixture(scope="session")
async def counter() -> TokenCounter:
    return await TokenCounter.open()


@pytest.fixture(scope="session")
def running_lookalike() -> Generator[Lookalike]:
    """Start the model server that the `lookalike` fixture resets for each test."""
    server = Lookalike().start()
    yield server
    server.stop()


@pytest.fixture
def lookalike(running_lookalike: Lookalike) -> Generator[Lookalike]:
    """Return the look-alike model server with no faults set."""
    running_lookalike.forget()
    yield running_lookalike
    running_lookalike.forget()
    if not running_lookalike.running:  # a test stopped the server
        running_lookalike.start()


@pytest.fixture
def make_settings() -> Callable[..., Settings]:
    """Return a function that creates settings with a unique KEY_PREFIX and local models."""
    prefix = f"t{str(ULID()).lower()}"

    def make(**given: Any) -> Settings:
        return load_settings(**{"KEY_PREFIX": prefix, "MODEL_PROVIDER": "local", "EMBEDDING_PROVIDER": "local", **given})

    return make


@pytest.fixture
def settings(make_settings: Callable[..., Settings]) -> Settings:
    return make_settings()


@pytest.fixture(scope="session")
async def live_url(lasting_redis_url: str) -> AsyncGenerator[str, None]:
    """Start the API without a worker and yield its URL."""
    settings = load_settings(KEY_PREFIX="api-tests", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local")
    async with open_runtime(settings, lasting_redis_url) as runtime, serving(create_app(settings, runtime)) as url:
        yield url


@pytest.fixture(scope="session")
async def live(live_url: str) -> AsyncGenerator[httpx.AsyncClient, None]:
    """Provide a client for a server without a worker."""
    async with httpx.AsyncClient(base_url=live_url, timeout=30) as client:
        yield client


@pytest.fixture(scope="session")
async def worked(lasting_redis_url: str) -> AsyncGenerator[httpx.AsyncClient, None]:
    """Provide a client for a server with a worker."""
    settings = load_settings(KEY_PREFIX="api-worked", MODEL_PROVIDER="local", EMBEDDING_PROVIDER="local")
    async with stack(settings, lasting_redis_url) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        yield client


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark fundamentals and tests that need no Redis as `quick`, and run slow files first."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)
    for item in items:
        with_redis = {"redis_url", "lasting_redis_url"}.intersection(getattr(item, "fixturenames", ()))
        if not item.get_closest_marker("slow") and (not with_redis or item.path.parent.name == "fundamentals"):
            item.add_marker("quick")
