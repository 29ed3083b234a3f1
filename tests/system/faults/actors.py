"""More of the load: repetitions under Idempotency-Keys, and users and sessions that are erased."""

from __future__ import annotations

from typing import Any

from tests.system.faults.journal import Journal
from tests.system.faults.workload import Actor, Client, Figures, Reply, SessionActor


class KeyedActor(Actor):
    """Owns one session and writes messages without ids, each request under an Idempotency-Key that it repeats as it likes."""

    def __init__(self, name: str, seed: str, client: Client, journal: Journal, figures: Figures) -> None:
        super().__init__(name, seed, client, journal, figures)
        self.session = f"keyed-{name}"
        self.path = f"/v1/working-memory/{self.session}/messages"

    async def act(self) -> None:
        said = [("user", self.text(self.fresh("q"))) for _ in range(self.rng.choice((1, 1, 2)))]
        # Saying the same twice in one request is no repetition.
        said += said[:1] if self.rng.random() < 0.1 else []
        op = self.journal.intend("keyed_append", f"{self.session}\n\n{self.name}", said=said)
        body = {
            "messages": [{"role": role, "content": text, "created_at": "2026-01-02T03:04:05Z"} for role, text in said],
            "user_id": self.name,
        }
        headers = {"Idempotency-Key": self.fresh(f"{self.rng.randrange(10**9)}")}
        if self.rng.random() < 0.2:
            await self.client.hang_up(self.rng, "POST", self.path, self.rng.uniform(0.001, 0.02), json=body, headers=headers)
        first = await self._until_done(body, headers)
        self.journal.outcome(op, ok=first.ok, tries=first.tries)
        if self.rng.random() < 0.3:
            again = await self._until_done(body, headers)
            if again.body != first.body or "idempotent-replayed" not in again.headers:
                self.saw(f"the repetition under {headers} was answered {again.body}, the first {first.body}")
        if self.rng.random() < 0.1:
            other = await self.client.ask(self.rng, "POST", self.path, json={**body, "messages": []}, headers=headers, fine=(422,))
            if other.status != 422:
                self.saw(f"another request under {headers} was answered {other.status}")

    async def _until_done(self, body: dict[str, Any], headers: dict[str, str]) -> Reply:
        """409 says that an earlier try is under way, or died less than its deadline ago."""
        tries = 0
        while True:
            reply = await self.client.ask(self.rng, "POST", self.path, json=body, headers=headers, fine=(409,))
            tries += reply.tries
            if reply.status != 409:
                return Reply(reply.ok, tries, reply.status, reply.body, reply.headers)
            await self.client.pause(self.rng)


class ErasedActor(Actor):
    """Owns a user: fills some sessions and memories, erases them all or one session with its memories, and begins anew."""

    def __init__(self, name: str, seed: str, client: Client, journal: Journal, figures: Figures) -> None:
        super().__init__(name, seed, client, journal, figures)
        self.user = f"erased-{name}"
        self.sessions = [SessionActor(f"{name}e{number}", seed, client, journal, figures, user=self.user) for number in range(2)]
        self.memories: list[str] = []

    async def act(self) -> None:
        session = self.rng.choice(self.sessions)
        options = {session.append: 10, session.put: 2, self._remember: 3, self._erase_user: 1, self._erase_session: 1}
        await self.choose({**options, session.read: 1} if session.alive else options)()

    async def _remember(self) -> None:
        name = self.fresh("e")
        text = self.text(name)
        op = self.journal.intend("create", name, memories=[[name, text]])
        record = {"id": name, "text": text, "user_id": self.user, "memory_type": "semantic"}
        reply = await self.client.ask(self.rng, "POST", "/v1/long-term-memory/", json={"memories": [record]})
        self.journal.outcome(op, ok=reply.ok, tries=reply.tries)
        self.memories.append(name)

    async def _erase_user(self) -> None:
        await self._erase(f"/v1/users/{self.user}", {}, self.sessions, self.memories)
        self.memories = []

    async def _erase_session(self) -> None:
        session = self.rng.choice(self.sessions)
        await self._erase(session.path, {**session.scope, "memories": "true"}, [session], [])

    async def _erase(self, path: str, params: dict[str, str], sessions: list[SessionActor], memories: list[str]) -> None:
        """Until the server says that it is done: nothing is written meanwhile, so nothing may be left."""
        op = self.journal.intend("erase", path, sessions=[one.key for one in sessions], memories=memories)
        tries = 0
        while True:
            reply = await self.client.ask(self.rng, "DELETE", path, params={**params, "wait": "5"})
            tries += reply.tries
            if not reply.ok or reply.body["status"] == "ok":
                break
        self.journal.outcome(op, ok=reply.ok, tries=tries)
        for one in sessions:
            one.gone()
