"""Edit memory blocks under load, with one writer per block."""

from __future__ import annotations

from typing import Any

from tests.system.faults.journal import Journal
from tests.system.faults.workload import Actor, Client, Figures, Reply

LABEL = "log"
_MOST_LINES = 20


class BlockActor(Actor):
    """Creates, edits and deletes one user's memory block."""

    def __init__(self, name: str, seed: str, client: Client, journal: Journal, figures: Figures) -> None:
        super().__init__(name, seed, client, journal, figures)
        self.user = f"blocks-{name}"
        self._path = f"/v1/blocks/{LABEL}"
        self._lines: list[str] | None = None
        self._before: list[str] = []
        self._etag = ""

    async def act(self) -> None:
        if self._lines is None:
            await self._make()
        elif len(self._lines) >= _MOST_LINES:
            await self._delete()
        else:
            await self.choose({self._append: 8, self._replace: 4, self._undo: 2, self._delete: 1})()

    async def _make(self) -> None:
        first = self.text(self.fresh("b"))
        op = self._intend([first])
        reply = await self.client.ask(self.rng, "PUT", self._path, params=self._owner, json={"value": first})
        self._done(op, [first], reply)

    async def _append(self) -> None:
        line = self.text(self.fresh("b"))
        await self._edit([*self._known, line], {"operation": "append", "content": line})

    async def _replace(self) -> None:
        position, line = self.rng.randrange(len(self._known)), self.text(self.fresh("b"))
        lines = [*self._known[:position], line, *self._known[position + 1 :]]
        await self._edit(lines, {"operation": "replace", "old_content": self._known[position], "content": line})

    async def _undo(self) -> None:
        if self._before:
            await self._edit(self._before, {}, method="POST", path=f"{self._path}/undo")

    async def _delete(self) -> None:
        op = self._intend(None)
        reply = await self.client.ask(self.rng, "DELETE", self._path, params=self._owner)
        self.journal.outcome(op, ok=reply.ok, tries=reply.tries)
        self._lines, self._before = None, []

    async def _edit(self, lines: list[str], body: dict[str, Any], *, method: str = "PATCH", path: str = "") -> None:
        """Send an edit. After a 412, read the block, since an earlier attempt may have worked."""
        op, headers = self._intend(lines), {"If-Match": self._etag}
        reply = await self.client.ask(self.rng, method, path or self._path, params=self._owner, json=body, headers=headers, fine=(412,))
        if reply.status == 412:
            again = await self.client.ask(self.rng, "GET", self._path, params=self._owner)
            reply = Reply(again.ok, reply.tries + again.tries, again.status, {"block": again.body}, again.headers)
        self._done(op, lines, reply)

    def _done(self, op: int, lines: list[str], reply: Reply) -> None:
        self.journal.outcome(op, ok=reply.ok, tries=reply.tries)
        if reply.ok and reply.body["block"]["value"] != "\n".join(lines):
            self.saw(f"the block of {self.user} reads {reply.body['block']['value']!r} instead of {lines}")
        if reply.ok:
            self._lines, self._before, self._etag = lines, self._known, reply.headers["etag"]

    def _intend(self, lines: list[str] | None) -> int:
        return self.journal.intend("block", self.user, value=None if lines is None else "\n".join(lines))

    @property
    def _owner(self) -> dict[str, str]:
        return {"user_id": self.user}

    @property
    def _known(self) -> list[str]:
        return self._lines or []
