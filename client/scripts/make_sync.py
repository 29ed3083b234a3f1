"""Makes the synchronous client of the asynchronous one: `python client/scripts/make_sync.py`, with `--check` to only compare.

Every line of `_sync/` and `sync.py` comes from here, so that the two clients cannot drift apart: what waits in one blocks in the other.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "agent_memory_client"

# The order counts: longer names stand before those that they contain.
RULES: tuple[tuple[str, str], ...] = (
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\basync context manager\b", "context manager"),
    (r"\b[Aa]synchronous client's methods\. `client/scripts/make_sync\.py` makes `_sync` of them\.", "synchronous client's methods."),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\bAwaitable\[(\w+)\]", r"\1"),
    (r"\bAwaitable, ", ""),
    (r"\bAsyncBaseTransport\b", "BaseTransport"),
    (r"\bAsyncClient\b", "Client"),
    (r"\baclose\b", "close"),
    (r"\baread\b", "read"),
    (r"\baiter_bytes\b", "iter_bytes"),
    (r"\b__aenter__\b", "__enter__"),
    (r"\b__aexit__\b", "__exit__"),
    (r"\basyncio\b", "time"),
    (r"\b_async\b", "_sync"),
    (r"\bMemoryAPIClient\b", "SyncMemoryAPIClient"),
    (r"\bcreate_memory_client\b", "create_memory_client_sync"),
)


def sources() -> dict[Path, Path]:
    """Each file that is made, and the file that it is made of."""
    made = {PACKAGE / "_sync" / path.name: path for path in sorted((PACKAGE / "_async").glob("*.py"))}
    return {**made, PACKAGE / "sync.py": PACKAGE / "client.py"}


def translated(text: str, source: str) -> str:
    """The blocking form of an asynchronous module. Raises ValueError when something of asyncio is left in it."""
    for pattern, replacement in RULES:
        text = re.sub(pattern, replacement, text)
    left = sorted(found for found in _words(ast.parse(text)) if re.search("async|await", found, re.IGNORECASE))
    if left:
        raise ValueError(f"{source}: add a rule for {', '.join(left)}")
    return f"# Made of {source} by client/scripts/make_sync.py: change that file, then run the script.\n{text}"


def _words(tree: ast.AST) -> set[str]:
    """The kinds of all nodes, and every name in the code (not in strings)."""
    found: set[str] = set()
    for node in ast.walk(tree):
        found.add(type(node).__name__)
        names = (getattr(node, key, None) for key in ("id", "attr", "name", "module"))
        found.update(name for name in names if isinstance(name, str))
    return found


def formatted(text: str, name: Path) -> str:
    """As ruff leaves it: sorted names, `yield from` where there is nothing to wait for, our layout."""
    # Said explicitly, since ruff would take the package's own modules for somebody else's while they do not exist.
    ours = 'lint.isort.known-first-party = ["agent_memory_client"]'
    fixes = ["check", "--fix", "--unsafe-fixes", "--quiet", "--exit-zero", "--select", "I,F401,RUF022,UP028", "--config", ours]
    for options in (fixes, ["format", "--quiet"]):
        command = [sys.executable, "-m", "ruff", *options, "--stdin-filename", str(name), "-"]
        text = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    return text


def made() -> dict[Path, str]:
    """Every file as it must be."""
    return {
        target: formatted(translated(source.read_text(encoding="utf-8"), source.relative_to(PACKAGE.parent).as_posix()), target)
        for target, source in sources().items()
    }


def main() -> int:
    wanted = made()
    present = {path: path.read_text(encoding="utf-8") for path in [*(PACKAGE / "_sync").glob("*.py"), PACKAGE / "sync.py"] if path.exists()}
    stale = sorted(str(path.relative_to(PACKAGE)) for path in wanted.keys() | present.keys() if wanted.get(path) != present.get(path))
    if "--check" in sys.argv[1:]:
        print("\n".join(f"{name}: not what make_sync.py makes" for name in stale) or "synchronous client: ok")
        return 1 if stale else 0
    for path in present.keys() - wanted.keys():
        path.unlink()
    for path, text in wanted.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    print(f"synchronous client: {len(stale)} files changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
