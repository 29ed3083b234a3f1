"""Generate the blocking client from the asynchronous client: `python client/scripts/make_sync.py`.

Every build of the package runs this script, including editable installs. Do not commit or edit
`_sync/`.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "agent_memory_client"
TWINNED = ("transport.py", "memory_client.py", "flat_calls.py", "legacy.py", "resources/*.py", "resources/features/*.py")
"""The modules that wait for the network, and the modules that import them."""

# The order matters: a name must come before shorter names that are part of it.
RULES: tuple[tuple[str, str], ...] = (
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\basync context manager\b", "context manager"),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\bAwaitable\[(\w+)\]", r"\1"),
    (r"\bCoroutine\[Any, Any, (\w+)\]", r"\1"),
    (r"\b(Awaitable|Coroutine), |, (Awaitable|Coroutine)$", ""),
    (r"\bAsyncBaseTransport\b", "BaseTransport"),
    (r"\bAsyncClient\b", "Client"),
    (r"\bAsyncPools\b", "Pools"),
    (r", (a pool of them for each event loop|which serve any number of event loops)", ""),
    (r"\baclose\b", "close"),
    (r"\baread\b", "read"),
    (r"\baiter_bytes\b", "iter_bytes"),
    (r"\b__aenter__\b", "__enter__"),
    (r"\b__aexit__\b", "__exit__"),
    (r"\basyncio\b", "time"),
    (r"\bagent_memory_client\.(transport|memory_client|flat_calls|legacy|resources)\b", r"agent_memory_client._sync.\1"),
    (r"\bMemory(API)?Client\b", r"SyncMemory\1Client"),
    (r"\bcreate_memory_client\b", "create_memory_client_sync"),
    (r" `client/scripts/make_sync\.py` makes the blocking twin of each\.", ""),
)


def blocking(text: str, source: str) -> str:
    """Convert an asynchronous module to blocking code.

    Raises ValueError if the result still contains asynchronous code.
    """
    for pattern, replacement in RULES:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    left = sorted(word for word in _words(ast.parse(text)) if re.search("async|await|coroutine", word, re.IGNORECASE))
    if left:
        raise ValueError(f"{source}: add a rule for {', '.join(left)}")
    return f"# Made of {source} by client/scripts/make_sync.py: change that file, then run the script.\n{text}"


def _words(tree: ast.AST) -> set[str]:
    """Return all node types and names in the code, but not the words in strings."""
    words: set[str] = set()
    for node in ast.walk(tree):
        words.add(type(node).__name__)
        names = (getattr(node, key, None) for key in ("id", "attr", "name", "module"))
        words.update(name for name in names if isinstance(name, str))
    return words


def twins(package: Path) -> dict[Path, str]:
    """Return the blocking client's files with their contents.

    Raises ValueError for asynchronous code that no rule covers.
    """
    sources = sorted(path for pattern in TWINNED for path in package.glob(pattern))
    made = {
        package / "_sync" / path.relative_to(package): blocking(path.read_text("utf-8"), path.relative_to(package.parent).as_posix())
        for path in sources
    }
    return {package / "_sync" / "__init__.py": '"""The blocking client. client/scripts/make_sync.py makes it."""\n', **made}


def write_twins(package: Path) -> list[Path]:
    """Write new and changed files, and delete files that have no source. Return their paths."""
    expected_files = twins(package)
    changed = [path for path, text in expected_files.items() if not path.exists() or path.read_text("utf-8") != text]
    for path in changed:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(expected_files[path], "utf-8")
    stale_files = sorted(set((package / "_sync").rglob("*.py")) - expected_files.keys())
    for path in stale_files:
        path.unlink()
    return [*changed, *stale_files]


if __name__ == "__main__":
    if changed := write_twins(PACKAGE):
        print(f"blocking client: {len(changed)} files made")
