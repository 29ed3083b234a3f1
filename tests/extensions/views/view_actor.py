"""Exercise summary views in the mixed fault run."""

from __future__ import annotations

from tests.system.faults.journal import Journal
from tests.system.faults.workload import Actor, Client, Figures


class ViewActor(Actor):
    """Creates views with an idempotency key, runs them, and deletes them."""

    def __init__(self, name: str, seed: str, client: Client, journal: Journal, figures: Figures) -> None:
        super().__init__(name, seed, client, journal, figures)
        self.ids: dict[str, str] = {}

    async def act(self) -> None:
        if len(self.ids) < 2:
            await self._create()
        else:
            await self.choose({self._create: 2, self._run: 3, self._delete: 3, self._list: 2})()

    async def _create(self) -> None:
        name = self.fresh("view")
        op = self.journal.intend("create_view", name)
        body = {"source": "long_term", "name": name, "group_by": ["user_id"]}
        headers = {"Idempotency-Key": f"{name}-{self.rng.randrange(10**9)}"}
        while True:
            reply = await self.client.ask(self.rng, "POST", "/v1/summary-views", json=body, headers=headers, fine=(409,))
            if reply.status != 409:
                break
            await self.client.pause(self.rng)
        self.journal.outcome(op, ok=reply.ok, tries=reply.tries)
        if reply.ok:
            self.ids[name] = reply.body["id"]

    async def _run(self) -> None:
        path = f"/v1/summary-views/{self.rng.choice(list(self.ids.values()))}/run"
        await self.client.ask(self.rng, "POST", path, json={"task_id": self.fresh("task")})

    async def _delete(self) -> None:
        name = self.rng.choice(list(self.ids))
        op = self.journal.intend("delete_view", name)
        reply = await self.client.ask(self.rng, "DELETE", f"/v1/summary-views/{self.ids.pop(name)}")
        self.journal.outcome(op, ok=reply.ok, tries=reply.tries)

    async def _list(self) -> None:
        reply = await self.client.ask(self.rng, "GET", "/v1/summary-views")
        there = {view["name"] for view in reply.body} if reply.ok else set(self.ids)
        if missing := set(self.ids) - there:
            self.saw(f"the views {sorted(missing)} are not listed")
