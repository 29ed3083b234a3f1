"""Run the look-alike with `python -m tests.support.lookalike --port 9999`.

POST /_faults injects faults.
"""

from __future__ import annotations

import argparse
import signal
import threading

from tests.support.lookalike.server import Lookalike


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=9999)
    parser.add_argument("--dimensions", type=int, default=1536)
    given = parser.parse_args()
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    server = Lookalike(dimensions=given.dimensions, port=given.port)
    server.start()
    print(f"OPENAI_BASE_URL={server.url}", flush=True)
    ended.wait()
    server.stop()


if __name__ == "__main__":
    main()
