"""Export, import and erase all data of an agent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

from agent_memory_client._wire.answers import Acknowledgement, parse_acknowledgement
from agent_memory_client._wire.requests import Call, Wait, query, segment, wait_seconds
from agent_memory_client._wire.transfers import ExportEnd, add_up_reports, import_parts
from agent_memory_client.models import ImportReport
from agent_memory_client.resources.base import Resource


class Agents(Resource):
    """Export, import and erase agents. The client's default namespace does not apply."""

    async def export(self, agent_id: str, namespace: str | None = None) -> AsyncIterator[bytes]:
        """Yield an agent's data as JSON lines, of `namespace` or (None, whatever the client's default) of all.

        That is its sessions with their messages, and the memories, blocks and procedures under its name. Raises
        MemoryProtocolError at the end of an incomplete export.
        """
        end = ExportEnd()
        async for line in self._transport.lines(Call("POST", _path(agent_id, "/export"), query(namespace=namespace), idempotent=False)):
            end.pass_line(line)
            yield line
        end.check()

    async def import_lines(
        self, agent_id: str, lines: Iterable[bytes | str], namespace: str | None = None, import_source: str | None = None
    ) -> ImportReport:
        """Import the lines of an agent's export as this agent's, as `users.import_lines` does; users keep their ids."""
        params = query(namespace=namespace, import_source=import_source)
        reports: list[ImportReport] = []
        for first_line, body in import_parts(lines):
            call = Call("POST", _path(agent_id, "/import"), {**params, "first_line": str(first_line)}, lines=body)
            reports.append(await self._read(ImportReport, call))
        return add_up_reports(reports)

    async def delete(self, agent_id: str, namespace: str | None = None, wait: Wait = None) -> Acknowledgement:
        """Delete an agent's data in `namespace` or (None, whatever the client's default) in all namespaces.

        That is its sessions with their messages, and the memories, blocks and procedures under its name. `wait` as in
        `users.delete`.
        """
        params = query(namespace=namespace, wait=wait)
        return parse_acknowledgement(await self._send(Call("DELETE", _path(agent_id), params, wait=wait_seconds(wait))))


def _path(agent_id: str, below: str = "") -> str:
    return f"/v1/agents/{segment('agent_id', agent_id)}{below}"
