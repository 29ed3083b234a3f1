"""Run limit (b), the minimum Redis commands for each operation, on the server's store.

`python -m benchmarks.limits.redis_limit` reads jobs from standard input, one per line, and prints
the results of each. Commands go through redis-py, and the data has realistic sizes.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import redis.asyncio
import uvloop

from benchmarks.measurement.meter import cpu_seconds
from benchmarks.setup import corpus
from benchmarks.setup.preload import PER_USER
from tests.support.lookalike.answers import embed

_HITS = 10
_SESSIONS = 40


class Limit:
    """The Redis commands for each operation, sent as one pipeline."""

    def __init__(self, client: redis.asyncio.Redis, words: str, vectors: str, field: str, users: int) -> None:
        self._client = client
        self._words, self._vectors, self._field = words, vectors, field
        self._users = users
        self._message = json.dumps(corpus.message("limit", 1)).encode()
        self._queries: dict[int, tuple[str, str, bytes]] = {}

    async def prepare(self) -> None:
        """Store sessions with 20 messages each, and prepare the queries."""
        pipe = self._client.pipeline(transaction=False)
        for number in range(_SESSIONS):
            pipe.hset(f"lim:s:{number}", mapping={"version": 1, "user": corpus.user(number), "tokens": 0})
            pipe.rpush(f"lim:m:{number}", *[self._message] * 20)
        await pipe.execute()
        for n in range(200):
            owner = n * 7919 % self._users
            question = corpus.question(owner, n * 104729 % PER_USER)
            vector = embed(question, 384).astype("float16").tobytes()
            words = "|".join(word.lower() for word in question.rstrip("?").replace("-", " ").split()[3:])
            self._queries[n] = (f"@u:{{{corpus.user(owner).encode().hex()}}}", words, vector)

    def put(self, pipe: Any, n: int) -> None:
        pipe.hset(f"lim:s:p{n}", mapping={"version": 1, "user": "u", "tokens": 400})
        pipe.delete(f"lim:m:p{n}")
        pipe.rpush(f"lim:m:p{n}", *[self._message] * 4)
        pipe.zadd("lim:due", {f"p{n}": n})

    def append(self, pipe: Any, n: int) -> None:
        pipe.rpush(f"lim:m:a{n % _SESSIONS}", self._message)
        pipe.hincrby(f"lim:s:{n % _SESSIONS}", "version", 1)
        pipe.zadd("lim:due", {str(n % _SESSIONS): n})

    def get(self, pipe: Any, n: int) -> None:
        pipe.hgetall(f"lim:s:{n % _SESSIONS}")
        pipe.lrange(f"lim:m:{n % _SESSIONS}", -20, -1)

    def create(self, pipe: Any, n: int) -> None:
        for place in range(20):
            pipe.hset(f"lim:r:{n}-{place}", mapping={"id": f"{n}-{place}", "text": self._message, "user": "user-000001", "created": n})

    def search(self, pipe: Any, n: int) -> None:
        clause, words, vector = self._queries[n % 200]
        near = f"({clause})=>[KNN {_HITS} @{self._field} $q AS d]"
        command = [
            "FT.SEARCH",
            self._vectors,
            near,
            "PARAMS",
            2,
            "q",
            vector,
            "RETURN",
            1,
            "d",
            "SORTBY",
            "d",
            "LIMIT",
            0,
            _HITS,
            "DIALECT",
            2,
        ]
        pipe.execute_command(*command)
        both = f"{clause} ({words})"
        pipe.execute_command("FT.SEARCH", self._words, both, "RETURN", 1, "j", "WITHSCORES", "LIMIT", 0, _HITS, "DIALECT", 2)

    def prompt(self, pipe: Any, n: int) -> None:
        self.get(pipe, n)
        self.search(pipe, n)


async def run() -> None:
    """Read the store's description from stdin, then run a series of commands for each line."""
    store = await _line()
    client = redis.asyncio.Redis.from_url(store["url"], protocol=3, max_connections=100)
    limit = Limit(client, store["words"], store["vectors"], store["field"], store["users"])
    await limit.prepare()
    _answer({})
    while job := await _line():
        _answer(await _measure(client, getattr(limit, job.pop("commands")), **job))
    await client.aclose()


async def _line() -> dict[str, Any]:
    """Return the next job, or an empty dict at the end of standard input."""
    return json.loads(await asyncio.to_thread(sys.stdin.readline) or "{}")


def _answer(value: dict[str, Any]) -> None:
    print(json.dumps(value), flush=True)


async def _measure(
    client: redis.asyncio.Redis, build: Callable[[Any, int], None], *, requests: int, concurrency: int, offset: int, warm: int
) -> dict[str, Any]:
    seconds: list[float] = []
    numbers = iter(range(offset + warm, offset + warm + requests))

    async def one(n: int) -> None:
        pipe = client.pipeline(transaction=False)
        build(pipe, n)
        await pipe.execute()

    async def work() -> None:
        for n in numbers:
            began = time.perf_counter()
            await one(n)
            seconds.append(time.perf_counter() - began)

    for n in range(offset, offset + warm):
        await one(n)
    used, began = cpu_seconds(os.getpid()), time.perf_counter()
    await asyncio.gather(*(work() for _ in range(concurrency)))
    return {"seconds": seconds, "wall": time.perf_counter() - began, "cpu": cpu_seconds(os.getpid()) - used}


if __name__ == "__main__":
    uvloop.run(run())
