"""Export, import and erase a user's data."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

from agent_memory_client._wire.answers import Acknowledgement, parse_acknowledgement
from agent_memory_client._wire.requests import Call, Wait, query, segment, wait_seconds
from agent_memory_client._wire.transfers import add_up_reports, check_export_end, import_parts
from agent_memory_client.models import ImportReport
from agent_memory_client.resources.base import Resource


class OwnerData(Resource):
    """Calls that affect all of an owner's data. `path` is the owner's URL path."""

    async def _export(self, path: str, namespace: str | None) -> AsyncIterator[bytes]:
        count, line = 0, b""
        async for line in self._transport.lines(Call("POST", f"{path}/export", query(namespace=namespace), idempotent=False)):
            count += 1
            yield line
        check_export_end(count, line)

    async def _import(self, path: str, lines: Iterable[bytes | str], namespace: str | None, import_source: str | None) -> ImportReport:
        params = query(namespace=namespace, import_source=import_source)
        reports: list[ImportReport] = []
        for first_line, body in import_parts(lines):
            call = Call("POST", f"{path}/import", {**params, "first_line": str(first_line)}, lines=body)
            reports.append(await self._read(ImportReport, call))
        return add_up_reports(reports)

    async def _delete(self, path: str, namespace: str | None, wait: Wait) -> Acknowledgement:
        return parse_acknowledgement(await self._send(Call("DELETE", path, query(namespace=namespace, wait=wait), wait=wait_seconds(wait))))


class Users(OwnerData):
    """Export, import and erase users. These calls ignore the client's default namespace."""

    def export(self, user_id: str, namespace: str | None = None) -> AsyncIterator[bytes]:
        """Yield a user's data as JSON Lines.

        If `namespace` is None, all namespaces are exported. The export includes everything that the
        server acknowledged before the call. Raises MemoryProtocolError at the end if the export is
        incomplete.
        """
        return self._export(_path(user_id), namespace)

    async def import_lines(
        self, user_id: str, lines: Iterable[bytes | str], namespace: str | None = None, import_source: str | None = None
    ) -> ImportReport:
        """Import an export as this user's data, into `namespace` if given. Idempotent.

        If the user or namespace differs from the export's, copies with new ids are created.
        Existing data does not change. The report contains the line numbers of rejected lines.
        `complete` is True if the import reached the end of the export. To delete the imported data,
        pass its `import_source` to `memories.purge`.
        """
        return await self._import(_path(user_id), lines, namespace, import_source)

    async def delete(self, user_id: str, namespace: str | None = None, wait: Wait = None) -> Acknowledgement:
        """Delete a user's sessions and memories.

        If `namespace` is None, the data in all namespaces is deleted. `wait` (seconds, or True for
        up to 10) waits for the deletion. If it takes longer, the response is `pending`.
        `operation_id` identifies the background job.
        """
        return await self._delete(_path(user_id), namespace, wait)


def _path(user_id: str) -> str:
    return f"/v1/users/{segment('user_id', user_id)}"
