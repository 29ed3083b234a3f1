# Made of agent_memory_client/_async/persons.py by client/scripts/make_sync.py: change that file, then run the script.
"""All that a server keeps of a user, to take away and to bring in again; what waits for somebody to look at it,
and what comes from a source that is no longer trusted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agent_memory_client._answers import parse
from agent_memory_client._calls import Wait
from agent_memory_client._parts import Ending, export_call, import_calls, list_quarantine_call, purge_call, review_call, together
from agent_memory_client._sync.connection import Connection
from agent_memory_client.models import AckResponse, ImportReport, MemoryRecord, PurgeRequest, PurgeResponse, QuarantineListResponse


class Persons(Connection):
    """Exports and imports of users; see `delete_user` for erasing."""

    def export_user(self, user_id: str, namespace: str | None = None) -> Iterator[bytes]:
        """Everything of a user as lines of JSON, in `namespace` or (None, whatever the client's default) in all of them.

        Whatever was acknowledged before is in it. Raises MemoryProtocolError at the end of an export that is not whole.
        """
        ending = Ending()
        for line in self._transport.lines(export_call(user_id, namespace)):
            ending.saw(line)
            yield line
        ending.check()

    def import_user(
        self, user_id: str, lines: Iterable[bytes | str], namespace: str | None = None, import_source: str | None = None
    ) -> ImportReport:
        """Brings the lines of an export in as this user's, with a namespace all into that; a second time changes nothing.

        Of another user's export, or with another namespace, it makes a copy, whose memories and changes have ids of their own.
        What is here stays as it is. Lines that cannot be taken are in the report, by number, and `complete` says whether the last line
        of the export came and counted all others. `import_source` is a name by which `purge_source` finds
        them.
        """
        calls = import_calls(user_id, namespace, lines, import_source)
        reports = [parse(ImportReport, self._transport.send(call)) for call in calls]
        return together(reports)

    def list_quarantine(
        self, namespace: str | None = None, user_id: str | None = None, limit: int = 20, offset: int = 0
    ) -> QuarantineListResponse:
        """A page of the memories that read like instructions to a model and wait for a review, the newest first (`limit` 1 to 100)."""
        call = list_quarantine_call(namespace, user_id, limit, offset)
        return parse(QuarantineListResponse, self._send(call))

    def approve_quarantined(self, memory_id: str) -> MemoryRecord:
        """Lets a memory be found and shown as it reads now; for administrators. Raises MemoryNotFoundError."""
        return parse(MemoryRecord, self._send(review_call(memory_id, "approve")))

    def reject_quarantined(self, memory_id: str) -> AckResponse:
        """Deletes a memory that is in quarantine, for good. Raises MemoryNotFoundError."""
        return parse(AckResponse, self._send(review_call(memory_id, "reject")))

    def purge_source(
        self,
        source: PurgeRequest,
        namespace: str | None = None,
        user_id: str | None = None,
        *,
        dry_run: bool = True,
        wait: Wait = True,
    ) -> PurgeResponse:
        """Deletes for good what comes from a source and what was made of nothing else; with `dry_run` only says what that would be.

        Of a user, in `namespace` or (None, whatever the client's default) everywhere. A worker does it: without an end within `wait`
        (seconds, or True for up to 10) the answer is `pending`, and `get_operation` of its `operation_id` has the counts later.
        """
        return parse(PurgeResponse, self._send(purge_call(source, namespace, user_id, dry_run, wait)))
