"""Convert procedures and tool statistics between wire models and Redis hashes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent_memory.extensions.procedures.helpfulness import smoothed_rate
from agent_memory.foundation.core.clock import from_micros, iso
from agent_memory.foundation.storage.keyspace import digest, tag
from agent_memory.foundation.storage.scripts import compact
from agent_memory.foundation.text.terms import terms
from agent_memory_client.models.features.procedures import Procedure, ProcedureContent, ProcedureOwner, ToolArguments, ToolMemory

FIELDS = ("d", "v", "h", "f", "ss", "sc", "fa")
"""The hash fields from which a `Procedure` is decoded."""
TOOL_FIELDS = ("d", "h", "f", "ms", "mc", "cs", "cc", "la", "sh", "er")
"""The hash fields from which a `ToolMemory` is decoded."""
PROCEDURE, TOOL = "procedure", "tool"

Fields = Mapping[bytes, bytes]


@dataclass(frozen=True, slots=True)
class StoredProcedure:
    pid: str
    procedure: Procedure

    @property
    def content(self) -> ProcedureContent:
        return ProcedureContent.model_validate(self.procedure.model_dump(include=set(ProcedureContent.model_fields)))


def pid_of(tenant: str, procedure_id: str) -> str:
    return digest("procedure", tenant, procedure_id)


def tool_pid(tenant: str, owner: ProcedureOwner, tool: str) -> str:
    return digest("tool", tenant, owner.namespace, owner.user_id, owner.agent_id, tool)


def owner_digest(tenant: str, owner: ProcedureOwner) -> str:
    """Return the digest that uniquely identifies this owner in Redis."""
    return digest("owner", tenant, owner.namespace, owner.user_id, owner.agent_id)


def words_digest(when_to_use: str) -> str:
    """Return a situation's digest, which reveals whether a vector is outdated."""
    return digest("words", when_to_use)


def procedure_fields(tenant: str, content: ProcedureContent) -> list[str]:
    """Return hash fields as alternating names and values, excluding counts and the vector."""
    body = content.model_dump_json(exclude_none=True)
    created = f"{content.created_at.timestamp():.6f}"
    sessions = ",".join(sorted({tag(source.session_id) for source in content.learned_from}))
    fields = {
        **_owner_fields(tenant, content, PROCEDURE),
        "d": body,
        "w": words_digest(content.when_to_use),
        "c": created,
        "st": tag(content.state),
        "rs": tag(content.result),
        "tl": ",".join(tag(name) for name in content.tools),
        "s": sessions,
        "k": " ".join(terms(content.when_to_use)),
    }
    return [part for item in fields.items() for part in item]


def tool_fields(tenant: str, owner: ProcedureOwner, tool: str, created: float) -> list[str]:
    """Return a new tool's hash fields as alternating names and values. `created` is a Unix time."""
    body = compact({"tool": tool, **owner.model_dump(include=set(ProcedureOwner.model_fields), exclude_none=True)})
    fields = {**_owner_fields(tenant, owner, TOOL), "d": body, "c": f"{created:.6f}", "tl": tag(tool)}
    return [part for item in fields.items() for part in item]


def _owner_fields(tenant: str, owner: ProcedureOwner, kind: str) -> dict[str, str]:
    names = {"ns": owner.namespace, "u": owner.user_id, "ag": owner.agent_id}
    tags = {field: tag(name) for field, name in names.items() if name is not None}
    return {"t": tag(tenant), "kd": tag(kind), "ow": owner_digest(tenant, owner), **tags}


def decode_procedure(fields: Fields) -> Procedure:
    helped, failed, scored = (int(fields.get(name, b"0")) for name in (b"h", b"f", b"sc"))
    counts = {
        "version": int(fields[b"v"]),
        "helped": helped,
        "failed": failed,
        "rate": smoothed_rate(helped, failed),
        "score": round(float(fields[b"ss"]) / scored, 6) if scored else None,
        "last_feedback_at": from_micros(int(fields[b"fa"])) if b"fa" in fields else None,
    }
    return Procedure.model_validate(json.loads(fields[b"d"]) | counts)


def decode_tool(fields: Fields) -> ToolMemory:
    succeeded, failed = (int(fields.get(name, b"0")) for name in (b"h", b"f"))
    timed, priced = (int(fields.get(name, b"0")) for name in (b"mc", b"cc"))
    cost = float(fields[b"cs"]) if priced else None
    shapes = [_shape(shape) for shape in json.loads(fields.get(b"sh", b"[]"))]
    return ToolMemory.model_validate(
        json.loads(fields[b"d"])
        | {
            "succeeded": succeeded,
            "failed": failed,
            "rate": smoothed_rate(succeeded, failed),
            "mean_duration_ms": float(fields[b"ms"]) / timed if timed else None,
            "mean_cost": None if cost is None else cost / priced,
            "total_cost": cost,
            "arguments": sorted(shapes, key=lambda shape: (-shape.succeeded, shape.failed, sorted(shape.shape.items()))),
            "errors": json.loads(fields.get(b"er", b"[]")),
            "last_called_at": from_micros(int(fields[b"la"])) if b"la" in fields else None,
        }
    )


def _shape(stored: Mapping[str, Any]) -> ToolArguments:
    example = json.loads(stored["e"]) if stored.get("e") else None
    return ToolArguments(shape=json.loads(stored["s"]), succeeded=stored["h"], failed=stored["f"], example=example)


def change_record(kind: str, content: ProcedureContent, by: str, reason: str = "") -> str:
    """Return a change as JSON. The scripts add the version and the previous content."""
    return compact({"kind": kind, "at": iso(content.updated_at), "by": by, "reason": reason})


def same_owner(one: ProcedureOwner, other: ProcedureOwner) -> bool:
    return (one.namespace, one.user_id, one.agent_id) == (other.namespace, other.user_id, other.agent_id)
