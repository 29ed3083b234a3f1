"""Load actors that repeat requests with Idempotency-Keys or erase users and sessions."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from tests.system.faults.journal import Journal
from tests.system.faults.workload import Actor, Client, Figures, Reply, SessionActor


class KeyedActor(Actor):
    """Writes to one session with Idempotency-Keys and randomly repeats requests."""

    def __init__(self, name: str, seed: str, client: Client, journal: Journal, figures: Figures) -> None:
        super().__init__(name, seed, client, journal, figures)
        self.session = f"keyed-{name}"
        self.path = f"/v1/working-memory/{self.session}/messages"

    async def act(self) -> None:
        said = [("user", self.text(self.fresh("q"))) for _ in range(self.rng.choice((1, 1, 2)))]
        # The same text twice in one request is not a repetition.
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
        """Repeat the request while the server returns 409 because an earlier one is running."""
        tries = 0
        while True:
            reply = await self.client.ask(self.rng, "POST", self.path, json=body, headers=headers, fine=(409,))
            tries += reply.tries
            if reply.status != 409:
                return Reply(reply.ok, tries, reply.status, reply.body, reply.headers)
            await self.client.pause(self.rng)


class ErasedActor(Actor):
    """Creates and forgets a user's data, and erases the user or a single session."""

    def __init__(self, name: str, seed: str, client: Client, journal: Journal, figures: Figures) -> None:
        super().__init__(name, seed, client, journal, figures)
        self.user = f"erased-{name}"
        self.sessions = [SessionActor(f"{name}e{number}", seed, client, journal, figures, user=self.user) for number in range(2)]
        self.memories: dict[str, str] = {}
        self.receipts: dict[str, str] = {}
        """Forgotten memories, by id."""

    async def act(self) -> None:
        session = self.rng.choice(self.sessions)
        options = {session.append: 8, session.put: 2, self._remember: 6, self._erase_user: 2, self._erase_session: 2}
        options |= {self._forget: 5, self._undo: 2}
        await self.choose({**options, session.read: 1} if session.alive else options)()

    async def _remember(self) -> None:
        name = self.fresh("e")
        text = self.text(name)
        op = self.journal.intend("create", name, memories=[[name, text]])
        record = {"id": name, "text": text, "user_id": self.user, "memory_type": "semantic"}
        reply = await self.client.ask(self.rng, "POST", "/v1/long-term-memory/", json={"memories": [record]})
        self.journal.outcome(op, ok=reply.ok, tries=reply.tries)
        self.memories[name] = text

    async def _forget(self) -> None:
        there = [name for name in self.memories if name not in self.receipts]
        if not there:
            return
        name = self.rng.choice(there)
        op = self.journal.intend("forget_by_request", name)
        reply = await self.client.ask(self.rng, "POST", "/v1/memory/forget", json={"ids": [name], "user_id": self.user})
        self.journal.outcome(op, ok=reply.ok, tries=reply.tries)
        receipt = reply.body["receipt_id"] if reply.ok else None
        if receipt is None and reply.tries == 1:
            self.saw(f"nothing of {name} was there to be forgotten")
        self.receipts[name] = receipt or ""

    async def _undo(self) -> None:
        kept = [name for name, receipt in self.receipts.items() if receipt]
        if not kept:
            return
        name = self.rng.choice(kept)
        op = self.journal.intend("undo_forgetting", name, text=self.memories[name])
        reply = await self.client.ask(self.rng, "POST", f"/v1/memory/forget/{self.receipts.pop(name)}/undo")
        self.journal.outcome(op, ok=reply.ok, tries=reply.tries)

    async def _erase_user(self) -> None:
        # The order and the erasure happen at different times; a write between them belongs to new data.
        waits = self.rng.random() < 0.5
        ended = asyncio.Event()
        undoing = [asyncio.create_task(self._undo_beside(receipt, ended)) for receipt in self.receipts.values() if receipt]
        await self._erase(f"/v1/users/{self.user}", {}, self.sessions, list(self.memories), waits=waits)
        ended.set()
        await asyncio.gather(*undoing)
        self.memories, self.receipts = {}, {}

    async def _undo_beside(self, receipt: str, ended: asyncio.Event) -> None:
        """Repeat an undo while an erasure runs, and once after it ends."""
        rng = random.Random(f"{receipt}")
        last = False
        while not last:
            last = ended.is_set()
            await self.client.ask(rng, "POST", f"/v1/memory/forget/{receipt}/undo", fine=(404,))

    async def _erase_session(self) -> None:
        session = self.rng.choice(self.sessions)
        await self._erase(session.path, {**session.scope, "memories": "true"}, [session], [], waits=self.rng.random() < 0.5)

    async def _erase(self, path: str, params: dict[str, str], sessions: list[SessionActor], memories: list[str], *, waits: bool) -> None:
        """Request an erasure and, if `waits`, wait for it to finish."""
        op = self.journal.intend("erase", path, sessions=[one.key for one in sessions], memories=memories)
        tries = 0
        while True:
            reply = await self.client.ask(self.rng, "DELETE", path, params={**params, "wait": "5" if waits else "0"})
            tries += reply.tries
            if not reply.ok or not waits or reply.body["status"] == "ok":
                break
        self.journal.outcome(op, ok=reply.ok, tries=tries)
        for one in sessions:
            one.gone()
