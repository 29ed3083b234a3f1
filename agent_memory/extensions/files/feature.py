"""The files feature, which splits documents into passages."""

from __future__ import annotations

from agent_memory.extensions.files.service import READ_FILE, FileService
from agent_memory.extensions.files.store import FileStore
from agent_memory.extensions.files.transfer import FileTransfer
from agent_memory.features.jobs.order_store import OrderStore
from agent_memory.foundation.core.feature import Feature, KeySpace, Services
from agent_memory.foundation.foundation import Foundation


def open_files(foundation: Foundation, services: Services) -> None:
    store = FileStore(foundation.client, foundation.keys, services[OrderStore])
    services.add(store, FileService(services, store), FileTransfer(services, store))


FEATURE = Feature(
    name="files",
    open=open_files,
    routes=("agent_memory.extensions.files.routes:router",),
    examples="agent_memory.extensions.files.examples:EXAMPLES",
    keys=(
        KeySpace("fi:<owner>", "hash", "the records of a user's files", "until deleted"),
        KeySpace(
            "fib:<file>",
            "string",
            "the bytes of a file that no worker has read yet",
            "until read, at most 7 days",
            not_exported="only text is exported",
        ),
        KeySpace("fii:<file>", "set", "the users who have a file with this id", "until their files are deleted"),
        KeySpace("fiu:<tenant>", "set", "the users who have files", "until their files are deleted"),
    ),
    jobs={READ_FILE: "agent_memory_worker.files:read_file"},
    exporter=FileTransfer,
    eraser=FileTransfer,
    purger=FileTransfer,
)
