"""Export, import and erase an agent's data."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

from agent_memory_client._wire.answers import Acknowledgement
from agent_memory_client._wire.requests import Wait, segment
from agent_memory_client.models import ImportReport
from agent_memory_client.resources.users import OwnerData


class Agents(OwnerData):
    """Export, import and erase agents. These calls ignore the client's default namespace."""

    def export(self, agent_id: str, namespace: str | None = None) -> AsyncIterator[bytes]:
        """Yield an agent's data as JSON Lines.

        The data includes sessions, messages, memories, blocks and procedures. If `namespace` is
        None, all namespaces are exported. Raises MemoryProtocolError at the end if the export is
        incomplete.
        """
        return self._export(_path(agent_id), namespace)

    async def import_lines(
        self, agent_id: str, lines: Iterable[bytes | str], namespace: str | None = None, import_source: str | None = None
    ) -> ImportReport:
        """Import an agent's export as this agent's data. User ids do not change.

        This works like `users.import_lines` in all other respects.
        """
        return await self._import(_path(agent_id), lines, namespace, import_source)

    async def delete(self, agent_id: str, namespace: str | None = None, wait: Wait = None) -> Acknowledgement:
        """Delete the agent's data that `export` returns.

        If `namespace` is None, the data in all namespaces is deleted. `wait` works like in
        `users.delete`.
        """
        return await self._delete(_path(agent_id), namespace, wait)


def _path(agent_id: str) -> str:
    return f"/v1/agents/{segment('agent_id', agent_id)}"
