"""Inject random faults, reproducible from a seed, and heal them later."""

from __future__ import annotations

import asyncio
import random
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import httpx

from tests.system.faults.fleet import Fleet, Member
from tests.system.faults.proxy import Proxy

MODEL_FAULTS = (
    *("500", "429", "html", "garbage_body", "null", "drip"),
    *("garbage", "fenced", "truncated", "wrong_types", "refusal", "empty_choices", "no_content", "length"),
    *("wrong_dimension", "nan", "zero", "short_batch", "ragged", "shuffled"),
)
# How often each fault is drawn.
_WEIGHTS = {
    "kill_api": 6,
    "kill_worker": 8,
    "kill_redis_server": 3,
    "kill_redis": 2,
    "stop_worker": 4,
    "end_worker": 2,
    "end_api": 2,
    "redis_cut": 4,
    "redis_lost_replies": 8,
    "redis_delay": 3,
    "redis_half_close": 3,
    "redis_swallow": 2,
    "redis_refuse": 2,
    "model_answers": 10,
    "model_down": 3,
    "model_lost_replies": 3,
    "model_delay": 2,
}
PROCESS_KILLS = ("kill -9 api", "kill -9 worker")
REDIS_KILLS = ("kill -9 redis-server", "kill -9 redis and its keeper")


@dataclass
class Chaos:
    """Injects a fault about every `pause` seconds.

    If `kills` (processes, Redis) is set, injects only that many kills and then stops.
    """

    seed: str
    fleet: Fleet
    redis: Proxy
    model: Proxy
    model_url: str
    lease_seconds: float
    pause: float = 1.0
    kills: tuple[int, int] = (0, 0)
    injected: Counter[str] = field(default_factory=Counter)
    log: list[str] = field(default_factory=list)
    _later: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    def __post_init__(self) -> None:
        self._rng = random.Random(f"{self.seed}/chaos")
        self._http = httpx.AsyncClient(timeout=5)

    @property
    def enough(self) -> bool:
        """True if all requested kills have happened."""
        done = [sum(self.injected[name] for name in names) for names in (PROCESS_KILLS, REDIS_KILLS)]
        return done[0] >= self.kills[0] and done[1] >= self.kills[1]

    async def run(self) -> None:
        """Inject faults until enough kills are done, or forever if none were requested."""
        begun = asyncio.get_running_loop().time()
        weights = {kind: weight for kind, weight in _WEIGHTS.items() if not any(self.kills) or kind.startswith("kill_")}
        while not any(self.kills) or not self.enough:
            await asyncio.sleep(self._rng.expovariate(1 / self.pause))
            kind = self._rng.choices(list(weights), list(weights.values()))[0]
            done = await getattr(self, f"_{kind}")()
            if done:
                self.injected[done] += 1
                self.log.append(f"{asyncio.get_running_loop().time() - begun:7.2f} {done}")

    async def heal(self) -> None:
        """End all active faults."""
        for task in list(self._later):
            task.cancel()
        self.redis.heal()
        self.model.heal()
        # Data that the proxy swallowed on a connection is lost; a real network would reset the connection, too.
        self.redis.cut()
        self.model.cut()
        for place in self.fleet.places.values():
            if place.stopped:
                self.fleet.resume(place)
        await self._http.post(f"{self.model_url}/_faults", json={"kind": None})
        await self._http.aclose()

    def _for(self, seconds: float, end: Callable[[], object]) -> None:
        """Schedule `end` to run after `seconds`."""

        async def later() -> None:
            await asyncio.sleep(seconds)
            result = end()
            if isinstance(result, Awaitable):
                await result

        task = asyncio.create_task(later())
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    def _one(self, command: str) -> Member:
        return self._rng.choice(self.fleet.of(command))

    async def _kill_api(self) -> str | None:
        return "kill -9 api" if self.fleet.kill(self._one("api")) else None

    async def _kill_worker(self) -> str | None:
        return "kill -9 worker" if self.fleet.kill(self._one("worker")) else None

    async def _kill_redis_server(self) -> str | None:
        return "kill -9 redis-server" if self.fleet.kill_redis_server(self._one("redis")) else None

    async def _kill_redis(self) -> str | None:
        return "kill -9 redis and its keeper" if self.fleet.kill(self._one("redis")) else None

    async def _end_worker(self) -> str | None:
        return "SIGTERM worker" if self.fleet.kill(self._one("worker"), signal.SIGTERM) else None

    async def _end_api(self) -> str | None:
        return "SIGTERM api" if self.fleet.kill(self._one("api"), signal.SIGTERM) else None

    async def _stop_worker(self) -> str | None:
        place = self._one("worker")
        if place.stopped or not self.fleet.stop(place):
            return None
        self._for(self.lease_seconds * self._rng.uniform(1.1, 2), lambda: self.fleet.resume(place))
        return "SIGSTOP worker beyond its lease"

    async def _redis_cut(self) -> str | None:
        return "redis: connections reset" if self.redis.cut() else None

    async def _redis_lost_replies(self) -> str | None:
        self.redis.lose_replies(self._rng.randrange(1, 6), lambda chunk: b"EVALSHA" in chunk[:40])
        return "redis: replies of scripts lost"

    async def _redis_delay(self) -> str | None:
        self.redis.delay = self._rng.uniform(0.02, 0.3)
        self._for(self._rng.uniform(0.5, 2), lambda: setattr(self.redis, "delay", 0.0))
        return "redis: delay"

    async def _redis_half_close(self) -> str | None:
        self.redis.half_close(self._rng)
        return "redis: half-closed"

    async def _redis_swallow(self) -> str | None:
        self.redis.swallow = True
        self._for(self._rng.uniform(0.3, 1.5), lambda: setattr(self.redis, "swallow", False))
        return "redis: packets dropped"

    async def _redis_refuse(self) -> str | None:
        self.redis.refuse = True
        self.redis.cut()
        self._for(self._rng.uniform(0.3, 2), lambda: setattr(self.redis, "refuse", False))
        return "redis: refused"

    async def _model_answers(self) -> str | None:
        kind = self._rng.choice(MODEL_FAULTS)
        times = self._rng.randrange(1, 12)
        response = await self._http.post(f"{self.model_url}/_faults", json={"kind": kind, "times": times})
        return f"model: {kind}" if response.status_code == 200 else None

    async def _model_down(self) -> str | None:
        self.model.refuse = True
        self.model.cut()
        self._for(self._rng.uniform(0.5, 4), lambda: setattr(self.model, "refuse", False))
        return "model: down"

    async def _model_lost_replies(self) -> str | None:
        self.model.lose_replies(self._rng.randrange(1, 4))
        return "model: replies lost"

    async def _model_delay(self) -> str | None:
        self.model.delay = self._rng.uniform(0.05, 1)
        self._for(self._rng.uniform(0.5, 2), lambda: setattr(self.model, "delay", 0.0))
        return "model: delay"
