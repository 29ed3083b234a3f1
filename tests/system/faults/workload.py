"""Actors that own sessions or memories, journal each write, and retry unanswered requests."""

from __future__ import annotations

import asyncio
import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from agent_memory.features.memories.records import message_memory_id
from agent_memory.foundation.core.scope import SessionRef
from tests.system.faults.journal import Journal

_CITIES = ("Lisbon", "Oslo", "Quito", "Osaka", "Tunis", "Perth", "Turin", "Malmo")
_THINGS = ("lamp", "bicycle", "violin", "ladder", "kettle", "map", "telescope", "carpet")
_FILLER = " The weather was fine, the train was late, and nobody at the station knew which platform it would leave from."
_SMALL_TALK = ("ok thanks", "hello", "haha yes", "yes please")
_CLIENT_SECONDS = 15.0


@dataclass
class Figures:
    """Statistics about the clients' requests."""

    requests: int = 0
    answers: Counter[int] = field(default_factory=Counter)
    no_answer: int = 0
    hangups: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    """5xx responses by status and code."""
    slowest: float = 0.0
    violations: list[str] = field(default_factory=list)
    """Responses that must never occur: a 500, an unexpected refusal, a read that lacks an acknowledged write."""


@dataclass(frozen=True)
class Reply:
    """The outcome of a request. `ok` means that the server acknowledged it."""

    ok: bool
    tries: int
    status: int = 0
    body: Any = None
    headers: httpx.Headers = field(default_factory=httpx.Headers)


class Client:
    """Sends requests to any of the APIs, and retries until one responds."""

    def __init__(self, urls: list[str], figures: Figures, stop: asyncio.Event) -> None:
        limits = httpx.Limits(max_connections=200, max_keepalive_connections=50)
        self._http = httpx.AsyncClient(timeout=_CLIENT_SECONDS, limits=limits)
        self._urls = urls
        self._figures = figures
        self._stop = stop

    async def close(self) -> None:
        await self._http.aclose()

    async def ask(
        self, rng: random.Random, method: str, path: str, *, tries: int = 100_000, fine: tuple[int, ...] = (), **request: Any
    ) -> Reply:
        """Send a request up to `tries` times. `fine` lists expected statuses besides 200."""
        figures = self._figures
        start = rng.randrange(len(self._urls))
        for number in range(1, tries + 1):
            url = self._urls[(start + number) % len(self._urls)]
            figures.requests += 1
            begun = asyncio.get_running_loop().time()
            try:
                response = await self._http.request(method, url + path, **request)
            except (httpx.HTTPError, AttributeError):  # anyio inspects a socket that uvloop has closed meanwhile
                figures.no_answer += 1
                await asyncio.sleep(rng.uniform(0.02, 0.2))  # as a client waits before a retry
                continue
            figures.slowest = max(figures.slowest, asyncio.get_running_loop().time() - begun)
            figures.answers[response.status_code] += 1
            if response.status_code == 409 and response.json()["code"] == "erasure_under_way":
                await asyncio.sleep(rng.uniform(0.05, 0.4))
                continue
            if response.status_code == 200 or response.status_code in fine:
                return Reply(response.status_code == 200, number, response.status_code, response.json(), response.headers)
            if response.status_code >= 500:
                self._refused(method, path, response)
                await asyncio.sleep(rng.uniform(0.05, 0.4))
                continue
            figures.violations.append(f"{method} {path} was refused: {response.status_code} {response.text[:300]}")
            return Reply(False, number, response.status_code)
        return Reply(False, tries)

    async def hang_up(self, rng: random.Random, method: str, path: str, after: float, **request: Any) -> None:
        """Send a request and disconnect before the response arrives."""
        self._figures.hangups += 1
        try:
            await self._http.request(method, rng.choice(self._urls) + path, timeout=after, **request)
        except (httpx.HTTPError, AttributeError):
            return

    async def pause(self, rng: random.Random) -> None:
        await asyncio.sleep(rng.uniform(0.2, 0.6))

    def _refused(self, method: str, path: str, response: httpx.Response) -> None:
        try:
            body = response.json()
            code = f"{body['code']}: {body['detail'][:80]}"
        except (ValueError, KeyError, TypeError):
            code = "no json"
        self._figures.codes[f"{response.status_code} {code}"] += 1
        if response.status_code != 503 or "retry-after" not in response.headers:
            self._figures.violations.append(f"{method} {path}: {response.status_code} {code} {response.text[:300]}")


class Actor(ABC):
    """Acts repeatedly until stopped."""

    def __init__(self, name: str, seed: str, client: Client, journal: Journal, figures: Figures) -> None:
        self.name = name
        self.rng = random.Random(f"{seed}/{name}")
        self.client = client
        self.journal = journal
        self.figures = figures
        self._number = 0

    async def run(self, stop: asyncio.Event, pause: float) -> None:
        """Act about every `pause` seconds."""
        while not stop.is_set():
            await self.act()
            try:
                await asyncio.wait_for(stop.wait(), self.rng.expovariate(1 / pause))
            except TimeoutError:
                continue

    @abstractmethod
    async def act(self) -> None:
        """Act once."""

    def fresh(self, kind: str) -> str:
        """Return an unused name."""
        self._number += 1
        return f"{kind}-{self.name}-{self._number}"

    def choose(self, options: dict[Callable[[], Any], int]) -> Callable[[], Any]:
        return self.rng.choices(list(options), list(options.values()))[0]

    def text(self, token: str) -> str:
        """Return a sentence that contains `token`."""
        rng = self.rng
        long = _FILLER if rng.random() < 0.3 else ""
        thing, city = rng.choice(_THINGS), rng.choice(_CITIES)
        return f"Entry {token.replace('-', 'x')}: I bought a {thing} in {city} for {rng.randrange(900)} euros.{long}"

    def message(self) -> tuple[dict[str, Any], list[Any]]:
        """Return a message both as sent and as recorded in the journal."""
        token = self.fresh("m")
        informative = self.rng.random() > 0.1
        text = self.text(token) if informative else self.rng.choice(_SMALL_TALK)
        role = self.rng.choice(("user", "assistant"))
        return {"id": token, "role": role, "content": text, "created_at": "2026-01-02T03:04:05Z"}, [token, role, text, informative]

    def saw(self, what: str) -> None:
        self.figures.violations.append(f"{self.name}: {what}")


class SessionActor(Actor):
    """Writes, reads and deletes a session, then starts over with the same id."""

    def __init__(self, name: str, seed: str, client: Client, journal: Journal, figures: Figures, *, user: str) -> None:
        super().__init__(name, seed, client, journal, figures)
        self.ref = SessionRef(f"s-{name}", "faults" if self.rng.random() < 0.5 else None, user)
        self.key = "\n".join((self.ref.session_id, self.ref.namespace or "", user))
        self.path = f"/v1/working-memory/{self.ref.session_id}"
        self.scope: dict[str, str] = {"user_id": user} | ({"namespace": self.ref.namespace} if self.ref.namespace else {})
        self.alive = False
        self.sent: dict[str, dict[str, Any]] = {}
        self.ids: list[str] = []
        self.unsure: set[str] = set()
        self.counter: int | None = None

    async def act(self) -> None:
        if not self.alive:
            await self.choose({self.append: 3, self.put: 1})()
            return
        options = {self.append: 60, self.put: 8, self.put_what_was_read: 6, self.patch: 8, self.read: 6, self.prompt: 6}
        await self.choose({**options, self.delete_message_memory: 3, self.delete: 2, self.forget: 2})()

    async def append(self) -> None:
        abandon = self.rng.random() < 0.04
        made = [self.message() for _ in range(1 if abandon else self.rng.choice((1, 1, 2, 3)))]
        op = self.journal.intend("append", self.key, messages=[entry for _, entry in made])
        body = {"messages": [message for message, _ in made], **self.scope}
        reply = await self.client.ask(self.rng, "POST", f"{self.path}/messages", json=body, tries=1 if abandon else 100_000)
        self.journal.outcome(op, ok=reply.ok, tries=reply.tries)
        self.sent |= {message["id"]: message for message, _ in made}
        if reply.ok:
            self.alive = True
            self.ids += [message["id"] for message, _ in made]
        else:
            self.unsure |= {message["id"] for message, _ in made}

    async def put(self) -> None:
        """Replace the session with some of its messages and a new one, without reading it first."""
        kept = self.ids[self.rng.randrange(len(self.ids) + 1) :][-20:]
        await self._put([self.sent[name] for name in kept], None, None)

    async def put_what_was_read(self) -> None:
        """Read the session, add a message and write it back, retrying if it has changed."""
        while True:
            read = await self.client.ask(self.rng, "GET", self.path, params=self.scope)
            fields = ("id", "role", "content", "created_at")
            kept = [{name: message[name] for name in fields} for message in read.body["messages"]]
            if await self._put(kept, read.body["context"], read.headers["etag"]):
                return

    async def _put(self, kept: list[dict[str, Any]], context: str | None, etag: str | None) -> bool:
        message, entry = self.message()
        counter = self.rng.randrange(10**6)
        memory_id = self.fresh("own")
        memories = [[memory_id, self.text(memory_id)]] if self.rng.random() < 0.3 else []
        ids = [one["id"] for one in kept] + [message["id"]]
        op = self.journal.intend("put", self.key, messages=[entry], ids=ids, counter=counter, memories=memories)
        body = {
            "messages": [*kept, message],
            "memories": [{"id": name, "text": text, "memory_type": "semantic"} for name, text in memories],
            "data": {"k": counter},
            "context": context,
            **self.scope,
        }
        headers = {"If-Match": etag} if etag else {}
        reply = await self.client.ask(self.rng, "PUT", self.path, json=body, headers=headers, fine=(412,))
        if reply.status == 412 and not (reply.tries > 1 and await self._holds(message["id"])):
            self.journal.outcome(op, ok=False, tries=reply.tries, refused=True)
            return False
        self.journal.outcome(op, ok=True, tries=reply.tries)
        self.sent[message["id"]] = message
        self.alive, self.ids, self.counter = True, ids, counter
        self.unsure.clear()
        return True

    async def _holds(self, message_id: str) -> bool:
        read = await self.client.ask(self.rng, "GET", self.path, params=self.scope)
        return any(message["id"] == message_id for message in read.body["messages"])

    async def patch(self) -> None:
        counter = self.rng.randrange(10**6)
        op = self.journal.intend("data", self.key, counter=counter)
        reply = await self.client.ask(self.rng, "PATCH", f"{self.path}/data", json={"data": {"k": counter}, **self.scope})
        self.journal.outcome(op, ok=reply.ok, tries=reply.tries)
        self.counter = counter

    async def read(self) -> None:
        """Check that a read returns every acknowledged write."""
        reply = await self.client.ask(self.rng, "GET", self.path, params=self.scope)
        if not reply.ok:
            return
        found = [message["id"] for message in reply.body["messages"]]
        known = [name for name in found if name not in self.unsure]
        if known != self.ids[len(self.ids) - len(known) :] or (len(known) < len(self.ids) and not reply.body["context"]):
            self.saw(f"GET {self.path} shows {found[:3]}…{found[-3:]} ({len(found)}), acknowledged were {self.ids[-6:]} ({len(self.ids)})")
        if reply.body["data"].get("k") != self.counter:
            self.saw(f"GET {self.path} shows data {reply.body['data']}, acknowledged was {self.counter}")

    async def prompt(self) -> None:
        query = self.sent[self.rng.choice(self.ids)]["content"] if self.ids else "a lamp in Lisbon"
        session = {"session_id": self.ref.session_id, **self.scope}
        body = {"query": query, "session": session, "long_term_search": {"text": query, "limit": 5}}
        await self.client.ask(self.rng, "POST", "/v1/memory/prompt", json=body)

    async def delete_message_memory(self) -> None:
        if not self.ids:
            return
        name = self.rng.choice(self.ids)
        op = self.journal.intend("delete_message_memory", self.key, message=name)
        params = {"memory_ids": message_memory_id(self.ref, name)}
        reply = await self.client.ask(self.rng, "DELETE", "/v1/long-term-memory", params=params)
        deleted = int(reply.body["status"].split()[2]) if reply.ok else 0
        self.journal.outcome(op, ok=reply.ok, tries=reply.tries, deleted=deleted)

    async def delete(self) -> None:
        op = self.journal.intend("delete_session", self.key)
        reply = await self.client.ask(self.rng, "DELETE", self.path, params=self.scope)
        self.journal.outcome(op, ok=reply.ok, tries=reply.tries)
        self.gone()

    def gone(self) -> None:
        """Reset the expected state after the session is deleted."""
        self.alive, self.ids, self.counter = False, [], None
        self.unsure.clear()

    async def forget(self) -> None:
        """Delete the session and then all memories derived from it."""
        await self.delete()
        op = self.journal.intend("forget_memories", self.key)
        wanted = {"session_id": {"eq": self.ref.session_id}, "user_id": {"eq": self.scope["user_id"]}, "limit": 100}
        tries = 0
        while True:
            listed = await self.client.ask(self.rng, "POST", "/v1/long-term-memory/search", json=wanted)
            ids = [memory["id"] for memory in listed.body["memories"] if not memory["id"].startswith("own-")] if listed.ok else []
            tries += listed.tries
            if not ids:
                break
            reply = await self.client.ask(self.rng, "DELETE", "/v1/long-term-memory", params={"memory_ids": ids})
            tries += reply.tries
        self.journal.outcome(op, ok=listed.ok, tries=tries)


class SharedWriter(SessionActor):
    """Appends to a shared session, and sometimes disconnects and repeats a request."""

    def __init__(self, name: str, seed: str, client: Client, journal: Journal, figures: Figures, *, session: str) -> None:
        super().__init__(name, seed, client, journal, figures, user="crowd")
        self.ref = SessionRef(session, None, "crowd")
        self.key = "\n".join((session, "", "crowd"))
        self.path = f"/v1/working-memory/{session}"
        self.scope = {"user_id": "crowd"}

    async def act(self) -> None:
        made = [self.message() for _ in range(self.rng.choice((1, 2)))]
        op = self.journal.intend("append", self.key, messages=[entry for _, entry in made], writer=self.name)
        body = {"messages": [message for message, _ in made], **self.scope}
        if self.rng.random() < 0.1:
            await self.client.hang_up(self.rng, "POST", f"{self.path}/messages", self.rng.uniform(0.001, 0.02), json=body)
        reply = await self.client.ask(self.rng, "POST", f"{self.path}/messages", json=body)
        self.journal.outcome(op, ok=reply.ok, tries=reply.tries)


class MemoryActor(Actor):
    """Creates, overwrites, edits, deletes, recreates and searches its own memories."""

    def __init__(self, name: str, seed: str, client: Client, journal: Journal, figures: Figures, *, user: str) -> None:
        super().__init__(name, seed, client, journal, figures)
        self.user = user
        self.texts: dict[str, str] = {}
        self.deleted: list[str] = []
        self.unsure: set[str] = set()

    async def act(self) -> None:
        options = {self.create: 40, self.overwrite: 10, self.edit: 20, self.delete: 15, self.recreate: 5, self.find: 10, self.get: 10}
        await self.choose(options if len(self.texts) > 3 else {self.create: 1})()

    async def _store(self, ids: list[str], *, abandon: bool = False) -> None:
        made = [[name, self.text(f"{name}-{self.rng.randrange(1000)}")] for name in ids]
        op = self.journal.intend("create", made[0][0], memories=made)
        records = [{"id": name, "text": text, "user_id": self.user, **self._kind(name)} for name, text in made]
        tries = 1 if abandon else 100_000
        reply = await self.client.ask(self.rng, "POST", "/v1/long-term-memory/", json={"memories": records}, tries=tries)
        self.journal.outcome(op, ok=reply.ok, tries=reply.tries)
        for name, text in made:
            if reply.ok:
                self.texts[name] = text
                self.unsure.discard(name)
            else:
                self.unsure.add(name)

    @staticmethod
    def _kind(name: str) -> dict[str, str]:
        """Return a memory's type, which never changes. Every third memory is a timeline event."""
        number = int(name.rsplit("-", 1)[1])
        if number % 3:
            return {"memory_type": "semantic"}
        return {"memory_type": "episodic", "event_date": f"2025-{number % 12 + 1:02}-{number % 28 + 1:02}T12:00:00Z"}

    async def create(self) -> None:
        abandon = self.rng.random() < 0.05
        await self._store([self.fresh("f") for _ in range(self.rng.choice((1, 2, 5)))], abandon=abandon)

    async def overwrite(self) -> None:
        await self._store([self._one()])

    async def recreate(self) -> None:
        if self.deleted:
            await self._store([self.deleted.pop()])

    async def edit(self) -> None:
        name = self._one()
        text = self.text(f"{name}-{self.rng.randrange(1000)}")
        op = self.journal.intend("patch", name, memories=[[name, text]])
        reply = await self.client.ask(self.rng, "PATCH", f"/v1/long-term-memory/{name}", json={"text": text, "topics": ["edited"]})
        self.journal.outcome(op, ok=reply.ok, tries=reply.tries)
        self.texts[name] = text

    async def delete(self) -> None:
        ids = list({self._one() for _ in range(self.rng.choice((1, 2, 3)))})
        op = self.journal.intend("delete_memories", ids[0], ids=ids)
        reply = await self.client.ask(self.rng, "DELETE", "/v1/long-term-memory", params={"memory_ids": ids})
        self.journal.outcome(op, ok=reply.ok, tries=reply.tries)
        for name in ids:
            del self.texts[name]
            self.deleted.append(name)

    async def get(self) -> None:
        name = self._one()
        reply = await self.client.ask(self.rng, "GET", f"/v1/long-term-memory/{name}")
        if reply.ok and name not in self.unsure and reply.body["text"] != self.texts[name]:
            self.saw(f"memory {name} reads {reply.body['text']!r}, acknowledged was {self.texts[name]!r}")

    async def find(self) -> None:
        """Search for the memory's unique word, which must work even before it is embedded."""
        name = self._one()
        # The word that no other memory has: RediSearch 2.10 misranks common words while memories are rewritten.
        query = {"text": self.texts[name].split(":")[0].split()[1], "user_id": {"eq": self.user}, "limit": 5, "search_mode": "keyword"}
        reply = await self.client.ask(self.rng, "POST", "/v1/long-term-memory/search", json=query)
        if reply.ok and name not in [memory["id"] for memory in reply.body["memories"]]:
            self.saw(f"memory {name} is not found by {query['text']!r}: {[memory['id'] for memory in reply.body['memories']]}")

    def _one(self) -> str:
        return self.rng.choice(list(self.texts))
