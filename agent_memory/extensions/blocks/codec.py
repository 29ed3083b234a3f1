"""Convert blocks between wire models and their Redis format."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from agent_memory.extensions.blocks.owners import BlockOwner
from agent_memory.foundation.core.clock import from_micros
from agent_memory_client.models.features.blocks import Block, BlockChange

# The wire name of each setting, and its field in Redis.
SETTINGS: Mapping[str, str] = {"description": "d", "limit": "lc", "limit_tokens": "lt", "read_only": "ro"}
# The attributes of a stored block, each with its field in Redis and its type.
_STORED: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "value": ("val", str),
    "description": ("d", str),
    "limit": ("lc", int),
    "limit_tokens": ("lt", int),
    "read_only": ("ro", bool),
    "version": ("v", int),
    "created": ("ca", int),
    "updated": ("ua", int),
    "base": ("base", str),
}
# A response lists at most this many of the owners that a block is attached to. Its count includes all of them.
_SHOWN_TARGETS = 10
_WIRE_NAMES = {short: name for name, short in SETTINGS.items()}


@dataclass(frozen=True, slots=True)
class StoredBlock:
    owner: BlockOwner
    label: str
    value: str
    description: str
    limit: int
    limit_tokens: int
    read_only: bool
    version: int
    created: int
    updated: int
    base: str
    attached_to: tuple[BlockOwner, ...]
    imported: str = ""
    """The import that stored the block, or empty once changed."""

    def model(self, tokens: int) -> Block:
        return Block.model_construct(
            None,
            **self.owner._asdict(),
            label=self.label,
            value=self.value,
            description=self.description,
            limit=self.limit,
            limit_tokens=self.limit_tokens or None,
            read_only=self.read_only,
            chars=len(self.value),
            tokens=tokens,
            version=self.version,
            created_at=from_micros(self.created),
            updated_at=from_micros(self.updated),
            attached_to=[target.model() for target in self.attached_to[:_SHOWN_TARGETS]],
            attached_count=len(self.attached_to),
        )


def decode_block(owner: BlockOwner, label: str, raw: bytes | str) -> StoredBlock:
    body = from_json(raw)
    targets = tuple(sorted(map(decode_owner, body["to"].values()), key=str))
    fields = {name: kind(body[short]) for name, (short, kind) in _STORED.items()}
    return StoredBlock(owner, label, **fields, attached_to=targets, imported=body.get("im", ""))


def encode_block(block: StoredBlock, names: Mapping[str, BlockOwner], tokens: int) -> str:
    """Return a block as JSON. `names` maps owner digests to attached owners."""
    body: dict[str, Any] = {short: getattr(block, name) for name, (short, _) in _STORED.items()}
    body |= {"ca": str(block.created), "ua": str(block.updated), "tk": tokens}
    body |= {"im": block.imported} if block.imported else {}
    return json.dumps(body | {"to": {name: encode_owner(owner) for name, owner in names.items()}}, ensure_ascii=False)


def encode_owner(owner: BlockOwner) -> str:
    return json.dumps(list(owner), ensure_ascii=False)


def decode_owner(raw: bytes | str) -> BlockOwner:
    return BlockOwner(*from_json(raw))


def decode_change(raw: bytes | str) -> BlockChange:
    body = from_json(raw)
    before, after = body["before"], body["after"]
    settings = {_WIRE_NAMES[short]: [before[short], after[short]] for short in sorted(before)} if before else None
    return BlockChange.model_construct(
        None,
        version=int(body["v"]),
        operation=body["op"],
        position=int(body["c"]),
        removed=body["old"],
        inserted=body["new"],
        settings=settings,
        undoes=int(body["u"]) if "u" in body else None,
        at=from_micros(int(body["at"])),
        actor=body["by"],
        said=_describe_change(body, settings),
    )


def encode_change(change: BlockChange, value: str) -> str:
    """Encode a change as JSON. `value` is the text before the change."""
    short = {SETTINGS[name]: pair for name, pair in (change.settings or {}).items() if name in SETTINGS and isinstance(pair, list)}
    body: dict[str, Any] = {"v": change.version, "op": change.operation, "c": change.position, "p": len(value[: change.position].encode())}
    body |= {"old": change.removed, "new": change.inserted, "by": change.actor, "at": str(round(change.at.timestamp() * 1_000_000))}
    body |= {"before": {name: pair[0] for name, pair in short.items()}, "after": {name: pair[1] for name, pair in short.items()}}
    return json.dumps(body | ({} if change.undoes is None else {"u": change.undoes}), ensure_ascii=False)


def replay_change(value: str, change: BlockChange) -> str:
    """Apply a change to a text. Raises ValueError if the change does not match the text."""
    end = change.position + len(change.removed)
    if value[change.position : end] != change.removed or change.position > len(value):
        raise ValueError(f"version {change.version} does not fit the text before it")
    return value[: change.position] + change.inserted + value[end:]


def _describe_change(body: Mapping[str, Any], settings: Mapping[str, Any] | None) -> str:
    removed, inserted = len(body["old"]), len(body["new"])
    text_change = {
        "append": f"appended {inserted} characters",
        "insert": f"inserted {inserted} characters",
        "replace": f"replaced {removed} characters by {inserted}",
        "rethink": f"wrote {inserted} characters in the place of {removed}",
        "undo": f"undid version {body.get('u')}: {removed} characters became {inserted}",
    }.get(body["op"], f"wrote {inserted} characters in the place of {removed}" if removed or inserted else "")
    changed = "" if not settings else f"changed {', '.join(settings)}"
    return "; ".join(part for part in (text_change, changed) if part) or "made an empty block"
