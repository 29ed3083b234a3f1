"""Run the look-alike model server as a process. POST /_faults injects faults."""

from __future__ import annotations

import sys

from tests.support.lookalike import Lookalike


class _Forgetful(list[object]):
    def append(self, _: object) -> None:
        """Discard the item."""


def main() -> None:
    server = Lookalike(dimensions=int(sys.argv[2]), port=int(sys.argv[1]), retry_after="1", requests=_Forgetful())  # type: ignore[arg-type]
    server.start()
    print(server.url, flush=True)
    sys.stdin.read()
    server.stop()


if __name__ == "__main__":
    main()
