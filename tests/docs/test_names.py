"""Test that names in docstrings, comments and pages exist."""

from __future__ import annotations

import ast
import functools
import io
import os
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE = ("agent_memory", "worker", "client", "evaluation", "tests", "benchmarks", "scripts", "examples", "client-ts")
_WORD = re.compile(r"[A-Za-z_]\w*")
_QUOTED = re.compile(r"`([A-Za-z_][\w.]*)(?:\(\))?`")
_FENCED = re.compile(r"```.*?```", re.DOTALL)
_LOOKS_LIKE_A_NAME = re.compile(r"[a-z0-9]_[a-z0-9]|[a-z][A-Z]")
_OTHER_CODE = {".lua", ".toml", ".json", ".html", ".sh", ".mjs", ".ts"}
_SKIPPED = {".venv", ".venvs", "dist", "node_modules", "site"}
OTHER_PRODUCTS = {
    "ConversationStore",  # Pydantic AI
    "DeleteAllMemoryOptions",  # mem0ai for TypeScript
    "ModelProto",  # sentencepiece
    "TimeoutStopSec",  # systemd
    "batch_add",  # Supermemory
    "extract_memories",  # CrewAI
    "generate_profile",  # Mem0, and the next five
    "get_profile_job",
    "get_profile_settings",
    "keyword_search",
    "latest_only",
    "sample_profiles",
    "update_profile_settings",
    "list_processing",  # Supermemory
    "num_ctx",  # Ollama
    "preload_memory",  # Google ADK
    "rewriteQuery",  # Supermemory, and the next
    "withSupermemory",
    "terminationGracePeriodSeconds",  # Kubernetes
}

PACKAGES = ("agent_memory", "worker", "client", "client-ts/src")
# A name such as `found` does not say what it contains: `matches`, `existing_file`, `owner`, `deleted_ids` do.
VAGUE_NAME = re.compile(
    r"\b_*(?:said|found|kept|known|asked|wanted|held|told|meant|aside|whose|who|here|there|theirs|stands|mine|gone|seen|spared|taken|went"
    r"|things?|something|some|got|came|heard|stated)\b",
    re.IGNORECASE,
)
# Fields of public models, exports and models' answers.
WIRE_NAMES = {"BlockChange.said", "PictureDescription.seen", "TimelineEvent.who", "_ResultLine.said"}
_DECLARED_IN_TYPESCRIPT = re.compile(r"\b(?:const|let|var|function|class) +(\w+)")


def files(*tops: str) -> Iterator[Path]:
    for top in tops:
        for folder, folders, names in os.walk(ROOT / top):
            folders[:] = set(folders) - _SKIPPED
            yield from (Path(folder, name) for name in names)


def docstrings(source: str) -> dict[int, str]:
    """Return docstrings, including those of attributes, by line number."""
    bodies = (body for node in ast.walk(ast.parse(source)) if isinstance(body := getattr(node, "body", None), list))
    constants = (one.value for body in bodies for one in body if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
    return {constant.lineno: constant.value for constant in constants if isinstance(constant.value, str)}


@functools.cache
def names_and_prose() -> tuple[set[str], list[tuple[str, str]]]:
    """Return all words in the code, and the location and text of each comment and docstring."""
    names: set[str] = set()
    prose: list[tuple[str, str]] = []
    code = [*files(*CODE)]
    for path in (path for path in code if path.suffix == ".py"):
        source, place = path.read_text("utf-8"), str(path.relative_to(ROOT))
        described = docstrings(source)
        prose += [(f"{place}:{line}", text) for line, text in described.items()]
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                prose.append((f"{place}:{token.start[0]}", token.string))
            elif token.start[0] not in described or token.type != tokenize.STRING:
                names.update(_WORD.findall(token.string))
    others = [path for path in code if path.suffix in _OTHER_CODE]
    for path in (*others, *ROOT.glob("*.toml"), *ROOT.glob("*.yml"), ROOT / "Makefile"):
        names.update(_WORD.findall(path.read_text("utf-8", errors="ignore")))
    pages = [*ROOT.glob("*.md"), *ROOT.glob("*/README.md"), *(ROOT / "docs").rglob("*.md")]
    prose += [(str(path.relative_to(ROOT)), _FENCED.sub("", path.read_text("utf-8"))) for path in pages]
    return names, prose


def test_prose_names_only_what_exists() -> None:
    names, prose = names_and_prose()
    known_names = names | OTHER_PRODUCTS
    paths = {path.name for path in (*files(*CODE, "docs"), *ROOT.iterdir())}
    unknown = {
        f"{place}: `{quoted}`"
        for place, text in prose
        for quoted in _QUOTED.findall(text)
        if quoted not in paths
        for part in quoted.split(".")
        if _LOOKS_LIKE_A_NAME.search(part) and part.removesuffix("_total") not in known_names
    }
    assert not unknown


def test_other_products_names_are_still_needed() -> None:
    text = "\n".join(text for _, text in names_and_prose()[1])
    assert not {name for name in OTHER_PRODUCTS if f"`{name}" not in text and f".{name}" not in text}


def _declared_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and name of every declaration. Fields are named `Class.field`."""
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    fields = {field.target: owner.name for owner in classes for field in owner.body if isinstance(field, ast.AnnAssign)}
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                yield node.lineno, f"{fields[node]}.{name}" if node in fields else name
            case ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                yield node.lineno, name
            case _:
                pass


def test_names_in_the_packages_say_what_they_contain() -> None:
    vague: dict[str, str] = {}
    for path in (path for path in files(*PACKAGES) if path.suffix in (".py", ".ts")):
        names, text = [(1, path.stem)], path.read_text("utf-8")
        if path.suffix == ".ts":
            names += [(number, name) for number, line in enumerate(text.splitlines(), 1) for name in _DECLARED_IN_TYPESCRIPT.findall(line)]
        elif VAGUE_NAME.search(text):
            names += _declared_names(ast.parse(text))
        vague |= {f"{path.relative_to(ROOT)}:{line}": name for line, name in names if VAGUE_NAME.fullmatch(name.rpartition(".")[2])}
    assert set(vague.values()) >= WIRE_NAMES
    assert not {place: name for place, name in vague.items() if name not in WIRE_NAMES}
