"""Export, import and erase all data of an agent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

from agent_memory_client._wire.answers import Acknowledgement
from agent_memory_client._wire.requests import Wait, segment
from agent_memory_client.models import ImportReport
from agent_memory_client.resources.users import OwnerData


class Agents(OwnerData):
    """Export, import and erase agents. The client's default namespace does not apply."""

    def export(self, agent_id: str, namespace: str | None = None) -> AsyncIterator[bytes]:
        """Yield an agent's data as JSON lines, from `namespace`, or from all namespaces if it is None.

        The data are its sessions with their messages, and the memories, blocks and procedures of the agent. Raises
        MemoryProtocolError at the end of an incomplete export.
        """
        return self._export(_path(agent_id), namespace)

    async def import_lines(
        self, agent_id: str, lines: Iterable[bytes | str], namespace: str | None = None, import_source: str | None = None
    ) -> ImportReport:
        """Import the lines of an agent's export as data of this agent, like `users.import_lines`.

        Users keep their ids.
        """
        return await self._import(_path(agent_id), lines, namespace, import_source)

    async def delete(self, agent_id: str, namespace: str | None = None, wait: Wait = None) -> Acknowledgement:
        """Delete an agent's data in `namespace`, or in all namespaces if it is None.

        The data are its sessions with their messages, and the memories, blocks and procedures of the agent. `wait`
        works as in `users.delete`.
        """
        return await self._delete(_path(agent_id), namespace, wait)


def _path(agent_id: str) -> str:
    return f"/v1/agents/{segment('agent_id', agent_id)}"
