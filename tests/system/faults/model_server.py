"""The look-alike as a process for long runs: it forgets the requests that it answered. Faults by POST /_faults."""

from __future__ import annotations

import sys

from tests.support.lookalike import Lookalike


class _Forgetful(list[object]):
    def append(self, _: object) -> None:
        """Keeps nothing."""


def main() -> None:
    """`python -m tests.system.faults.model_server PORT DIMENSIONS`; ends with its standard input."""
    server = Lookalike(dimensions=int(sys.argv[2]), port=int(sys.argv[1]), retry_after="1", requests=_Forgetful())  # type: ignore[arg-type]
    server.start()
    print(server.url, flush=True)
    sys.stdin.read()
    server.stop()


if __name__ == "__main__":
    main()
