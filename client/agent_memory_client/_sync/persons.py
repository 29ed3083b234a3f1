# Made of agent_memory_client/_async/persons.py by client/scripts/make_sync.py: change that file, then run the script.
"""All that a server keeps of a user: to take away, and to bring in again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agent_memory_client._answers import parse
from agent_memory_client._parts import Ending, export_call, import_calls, together
from agent_memory_client._sync.connection import Connection
from agent_memory_client.models import ImportReport


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

    def import_user(self, user_id: str, lines: Iterable[bytes | str], namespace: str | None = None) -> ImportReport:
        """Brings the lines of an export in as this user's, with a namespace all into that; a second time changes nothing.

        What is here stays as it is. Lines that cannot be taken are in the report, by number, and `complete` says whether the last line
        of the export came and counted all others.
        """
        reports = [parse(ImportReport, self._transport.send(call)) for call in import_calls(user_id, namespace, lines)]
        return together(reports)
