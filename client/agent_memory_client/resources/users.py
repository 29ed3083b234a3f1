"""Export, import and erase all data of a user."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

from agent_memory_client._wire.answers import Acknowledgement, parse_acknowledgement
from agent_memory_client._wire.requests import Call, Wait, query, segment, wait_seconds
from agent_memory_client._wire.transfers import ExportEnd, add_up_reports, import_parts
from agent_memory_client.models import ImportReport
from agent_memory_client.resources.base import Resource


class OwnerData(Resource):
    """Requests for all data of an owner. `path` is the owner's URL path."""

    async def _export(self, path: str, namespace: str | None) -> AsyncIterator[bytes]:
        end = ExportEnd()
        async for line in self._transport.lines(Call("POST", f"{path}/export", query(namespace=namespace), idempotent=False)):
            end.pass_line(line)
            yield line
        end.check()

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
    """Export, import and erase users.

    The client's default namespace does not apply: None means all namespaces.
    """

    def export(self, user_id: str, namespace: str | None = None) -> AsyncIterator[bytes]:
        """Yield a user's data as JSON lines, from `namespace`, or from all namespaces if it is None.

        The export contains everything that the server acknowledged before. Raises MemoryProtocolError at the end of an
        incomplete export.
        """
        return self._export(_path(user_id), namespace)

    async def import_lines(
        self, user_id: str, lines: Iterable[bytes | str], namespace: str | None = None, import_source: str | None = None
    ) -> ImportReport:
        """Import the lines of an export as data of this user, into `namespace` if given. A repeat changes nothing.

        An import as another user or into another namespace makes copies with new ids. Stored data does not change. The
        report lists refused lines by number. `complete` is True if the import included the last line, and its count is
        right. Use `import_source` with `memories.purge` to delete the import.
        """
        return await self._import(_path(user_id), lines, namespace, import_source)

    async def delete(self, user_id: str, namespace: str | None = None, wait: Wait = None) -> Acknowledgement:
        """Delete a user's sessions and memories in `namespace`, or in all namespaces if it is None.

        `wait` (seconds, or True for up to 10) waits for the deletion. The answer is `pending` if it takes longer.
        `operation_id` is the id of the work.
        """
        return await self._delete(_path(user_id), namespace, wait)


def _path(user_id: str) -> str:
    return f"/v1/users/{segment('user_id', user_id)}"
