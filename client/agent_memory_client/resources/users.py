"""Users: all that a server keeps of one, to take away, to bring in again, and to erase."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

from agent_memory_client._wire.answers import Acknowledgement, parse_acknowledgement
from agent_memory_client._wire.requests import Call, Wait, query, segment, wait_seconds
from agent_memory_client._wire.transfers import ExportEnd, add_up_reports, import_parts
from agent_memory_client.models import ImportReport
from agent_memory_client.resources.base import Resource


class Users(Resource):
    """Exports, imports and erases users.

    The client's default namespace does not count here: "all of this user" means all, unless a call names a namespace.
    """

    async def export(self, user_id: str, namespace: str | None = None) -> AsyncIterator[bytes]:
        """Everything of a user as lines of JSON, in `namespace` or (None, whatever the client's default) in all of them.

        Whatever was acknowledged before is in it. Raises MemoryProtocolError at the end of an export that is not whole.
        """
        end = ExportEnd()
        async for line in self._transport.lines(Call("POST", _path(user_id, "/export"), query(namespace=namespace), idempotent=False)):
            end.pass_line(line)
            yield line
        end.check()

    async def import_lines(
        self, user_id: str, lines: Iterable[bytes | str], namespace: str | None = None, import_source: str | None = None
    ) -> ImportReport:
        """Brings the lines of an export in as this user's, with a namespace all into that; a second time changes nothing.

        Of another user's export, or with another namespace, it makes a copy, whose memories and changes have ids of their own.
        What is here stays as it is. Lines that cannot be taken are in the report, by number, and `complete` says whether the last line
        of the export came and counted all others. `import_source` is a name by which `memories.purge` finds them.
        """
        params = query(namespace=namespace, import_source=import_source)
        reports: list[ImportReport] = []
        for first_line, body in import_parts(lines):
            call = Call("POST", _path(user_id, "/import"), {**params, "first_line": str(first_line)}, lines=body)
            reports.append(await self._read(ImportReport, call))
        return add_up_reports(reports)

    async def delete(self, user_id: str, namespace: str | None = None, wait: Wait = None) -> Acknowledgement:
        """Deletes all sessions and memories of a user, in `namespace` or (None, whatever the client's default) in all of them.

        With `wait` (seconds, or True for up to 10) it answers when that is done, or `pending` when it takes longer; the answer's
        `operation_id` names the work.
        """
        params = query(namespace=namespace, wait=wait)
        return parse_acknowledgement(await self._send(Call("DELETE", _path(user_id), params, wait=wait_seconds(wait))))


def _path(user_id: str, below: str = "") -> str:
    return f"/v1/users/{segment('user_id', user_id)}{below}"
