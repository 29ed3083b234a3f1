"""Build agent_memory/foundation/llm/data/cl100k_base.tiktoken.xz from js-tiktoken (MIT).

    npm pack js-tiktoken@1.0.21
    python scripts/build_ranks.py js-tiktoken-1.0.21.tgz

tiktoken would download this file at run time, which fails without internet access. The script
checks the official digest.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import re
import sys
import tarfile
from pathlib import Path

MEMBER = "package/dist/ranks/cl100k_base.js"
SHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
TARGET = Path(__file__).resolve().parent.parent / "agent_memory" / "foundation" / "llm" / "data" / "cl100k_base.tiktoken.xz"


def ranks_of(source: str) -> bytes:
    """Convert js-tiktoken's ranks to tiktoken's format, with one `base64 rank` line per token.

    js-tiktoken's lines have the form `! first-rank token token …`, with consecutive ranks.
    """
    found = re.search(r'"bpe_ranks":("(?:[^"\\]|\\.)*")', source)
    if found is None:
        raise SystemExit(f"{MEMBER} has no bpe_ranks")
    lines: list[tuple[int, str]] = []
    for line in json.loads(found[1]).split("\n"):
        if line:
            _, first, *tokens = line.split(" ")
            lines.extend((int(first) + index, token) for index, token in enumerate(tokens))
    return "".join(f"{token} {rank}\n" for rank, token in sorted(lines)).encode()


def main(package: str) -> None:
    with tarfile.open(package) as archive:
        member = archive.extractfile(MEMBER)
        if member is None:
            raise SystemExit(f"{package} has no {MEMBER}")
        ranks = ranks_of(member.read().decode())
    digest = hashlib.sha256(ranks).hexdigest()
    if digest != SHA256:
        raise SystemExit(f"the ranks have sha256 {digest}, not the official {SHA256}")
    TARGET.write_bytes(lzma.compress(ranks, preset=9 | lzma.PRESET_EXTREME))
    print(f"{TARGET.name}: {len(ranks)} bytes, {TARGET.stat().st_size} compressed")


if __name__ == "__main__":
    main(sys.argv[1])
