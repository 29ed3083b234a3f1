"""Load Lua scripts with named arguments and shared parts.

The script "<folder>/<name>" is the file `agent_memory/<level>/<folder>/lua/<name>.lua`. The file may also be in a
subfolder of `lua`. It starts with `#!lua` and declares its arguments, which become local variables:

    -- KEYS: due, tries, documents...
    -- ARGV: root, limit: number, exclusive: flag, header: json, member, batch?, messages...

`?` marks arguments that may be nil; optional keys must come last. `...` marks an argument with any number of values; in
the example, the first is `ARGV[messages_at]`. `local outbox = require("storage/outbox")` inserts a part: a file without
`#!lua` that returns a table. A part declares the arguments that it uses: `-- NEEDS: root, due`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import count
from typing import Any

from pydantic_core import to_json

LEVELS = ("foundation", "features", "extensions", "interfaces")
"""Folders of `agent_memory` that may contain scripts."""
_DECLARED = re.compile(r"-- (KEYS|ARGV|NEEDS): (.+)")
_ARGUMENT = re.compile(r"(\w+)(?:: (number|flag|json))?(\?|\.\.\.)?")
_REQUIRE = re.compile(r'local (\w+) = require\("(\w+/(\w+))"\)')
# Redis gets this string for None, because an empty string is an ordinary value.
_NONE = "\0"
# By kind of argument: the Python encoder, and the Lua expression that decodes the value.
_ENCODERS: Mapping[str, Callable[[Any], Any]] = {"flag": int, "json": partial(to_json, inf_nan_mode="null")}
_DECODED = {"": "{0}", "number": "tonumber({0})", "flag": "{0} == '1'", "json": "cjson.decode({0})"}


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument that a script declares.

    `kind` is "", "number", "flag" or "json". `mark` is "", "?" or "...".
    """

    name: str
    kind: str
    mark: str

    def local(self, table: str, position: int) -> str:
        """Return a line of Lua that assigns the argument to a local variable."""
        if self.mark == "...":
            return f"local {self.name}_at = {position}"
        value = f"{table}[{position}]"
        decoded = _DECODED[self.kind].format(value)
        if self.mark == "?" and table == "ARGV":
            decoded = f"{value} ~= '\\0' and {decoded} or nil"
        return f"local {self.name} = {decoded}"


@dataclass(frozen=True, slots=True)
class LuaScript:
    """A loaded script with its source for Redis and its declared arguments."""

    name: str
    source: str
    keys: tuple[Argument, ...]
    args: tuple[Argument, ...]
    names: Mapping[str, None]
    encoders: tuple[tuple[int, Callable[[Any], Any]], ...]
    """The position in `args` of each value to encode, and its encoder."""
    optional: tuple[int, ...]
    """The positions in `args` of the values that may be None."""

    def command(self, verb: str, script: str, holder: object, named: Mapping[str, Any]) -> list[Any]:
        """Return the command that runs the script.

        Arguments come from `named`, or else from attributes of `holder`. Raises TypeError for a
        missing or unknown argument.
        """
        try:
            values = [named[name] if name in named else getattr(holder, name) for name in self.names]
        except AttributeError as error:
            raise TypeError(f"{self.name}.lua needs an argument: {error}") from None
        if not named.keys() <= self.names.keys():
            raise TypeError(f"{self.name}.lua has no argument {', '.join(sorted(named.keys() - self.names.keys()))}")
        keys, args = values[: len(self.keys)], values[len(self.keys) :]
        for place, encode in self.encoders:
            if args[place] is not None:
                args[place] = encode(args[place])
        for place in self.optional:
            if args[place] is None:
                args[place] = _NONE
        if self.keys and self.keys[-1].mark:
            keys = keys[:-1] + list(keys[-1]) if self.keys[-1].mark == "..." else [key for key in keys if key is not None]
        if self.args and self.args[-1].mark == "...":
            args[-1:] = args[-1]
        return [verb, script, len(keys), *keys, *args]

    def read_only(self, holder: object = None, /, **named: Any) -> list[Any]:
        """Return the command that runs this read-only script in a pipeline."""
        # A pipeline cannot retry the command if Redis lacks the script, so the command contains the source.
        return self.command("EVAL_RO", self.source, holder, named)


@cache
def load(name: str) -> LuaScript:
    """Load a script. Raises ValueError if a declaration is invalid."""
    first, *lines = _lines(name)
    if not first.startswith("#!lua"):
        raise ValueError(f"{name}.lua is not a script: its first line must begin with #!lua")
    keys, args = _declared(lines, "KEYS"), _declared(lines, "ARGV")
    names = dict.fromkeys(argument.name for argument in (*keys, *args))
    if len(names) != len(keys) + len(args):
        raise ValueError(f"{name}.lua declares an argument twice")
    parts: dict[str, list[str]] = {}
    body = _expand(name, lines, parts, set(names))
    named = [argument.local("KEYS", position) for position, argument in zip(count(1), keys, strict=False)]
    named += [argument.local("ARGV", position) for position, argument in zip(count(1), args, strict=False)]
    text = [first, *named, *(line for part in parts.values() for line in part), *body]
    encoders = tuple((place, _ENCODERS[argument.kind]) for place, argument in enumerate(args) if argument.kind in _ENCODERS)
    optional = tuple(place for place, argument in enumerate(args) if argument.mark == "?")
    return LuaScript(name, "\n".join(text) + "\n", keys, args, names, encoders, optional)


def _lines(name: str) -> list[str]:
    owner, _, stem = name.partition("/")
    paths = [path for folder in _folders(owner) if (path := folder / f"{stem}.lua").is_file()]
    if len(paths) != 1:
        raise ValueError(f"{name}.lua is in {len(paths)} `lua` folders of {owner}: it must be in exactly one")
    return paths[0].read_text(encoding="utf-8").splitlines()


@cache
def _folders(owner: str) -> list[Traversable]:
    """Return the `lua` folders of `owner`, such as "storage", and their subfolders."""
    tops = [folder for level in LEVELS if (folder := files("agent_memory") / level / owner / "lua").is_dir()]
    return [folder for top in tops for folder in (top, *(entry for entry in top.iterdir() if entry.is_dir()))]


def _declared(lines: list[str], kind: str) -> tuple[Argument, ...]:
    items = [
        item
        for line in lines
        if (declaration := _DECLARED.fullmatch(line)) and declaration[1] == kind
        for item in declaration[2].split(", ")
    ]
    matches = [_ARGUMENT.fullmatch(item) for item in items]
    if None in matches:
        raise ValueError(f"no argument: {items[matches.index(None)]!r}")
    return tuple(Argument(match[1], match[2] or "", match[3] or "") for match in matches if match)


def _expand(name: str, lines: list[str], parts: dict[str, list[str]], arguments: set[str]) -> list[str]:
    """Return a file's lines of code, and add the parts it requires to `parts`."""
    body: list[str] = []
    for line in lines:
        if match := _REQUIRE.fullmatch(line):
            local, part, stem = match.groups()
            if local != stem:
                raise ValueError(f"{name}.lua: {part} is required as {stem}, not as {local}")
            if part not in parts:
                _add_part(part, stem, parts, arguments)
        elif line and not line.lstrip().startswith("--"):
            body.append(line)
    return body


def _add_part(part: str, stem: str, parts: dict[str, list[str]], arguments: set[str]) -> None:
    lines = _lines(part)
    lacking = {argument.name for argument in _declared(lines, "NEEDS")} - arguments
    if lacking:
        raise ValueError(f"{part}.lua needs arguments that its script does not declare: {', '.join(sorted(lacking))}")
    # Parts that this part requires are added first.
    body = _expand(part, lines, parts, arguments)
    value = next(position for position, line in enumerate(body) if line.startswith("return "))
    body[value] = body[value].replace("return", f"{stem} =", 1)
    parts[part] = [f"local {stem}", "do", *body, "end"]
