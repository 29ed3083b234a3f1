"""Generate the look-alike's deterministic vectors, summaries and facts."""

from __future__ import annotations

import hashlib
import json
import re
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

_STOP_WORDS = """a an and are as at be but by did do does for from had has have he her his how i in is it its me my of on or our she so that
the their them they this to was we were what when where which who why will with you your"""
STOP = frozenset(_STOP_WORDS.split())
_WORD = re.compile(r"\w+")
_NAME = re.compile(r"\b[A-Z][a-z]{2,}\b")
_LINE = re.compile(r'^\{"n": ?\d+.*\}$', re.MULTILINE)
_KEPT = re.compile(r'^\{"k": ?\d+.*\}$', re.MULTILINE)
_CONTEXT = re.compile(r"<(context-\w+)>.*?</\1>", re.DOTALL)
_QUESTION = re.compile(r"<(question-\w+)>\n(.*?)\n</\1>", re.DOTALL)
_SUMMARY = re.compile(r"<(summary-\w+)>\n(.*?)\n</\1>", re.DOTALL)


def stems(text: str) -> list[str]:
    """Return the lowercase words, with stop words and the most common endings removed."""
    words = [word for word in _WORD.findall(text.lower()) if word not in STOP]
    return [re.sub(r"(ing|ed|es|s)$", "", word) if len(word) > 4 else word for word in words]


@lru_cache(maxsize=20_000)
def _place(stem: str) -> tuple[int, float]:
    digest = hashlib.blake2b(stem.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest[:6], "little"), 1.0 if digest[7] & 1 else -1.0


def embed(text: str, dimensions: int) -> NDArray[np.float32]:
    """Return a unit vector from hashed stems, so that texts with common words are similar."""
    vector = np.zeros(dimensions, dtype=np.float32)
    for stem in stems(text) or ["(blank)"]:
        index, sign = _place(stem)
        vector[index % dimensions] += sign
    length = float(np.linalg.norm(vector))
    if length == 0.0:
        vector[0] = length = 1.0
    return vector / length


def chat_answer(body: dict[str, Any]) -> str:
    """Return an answer to a chat request in the form that the prompt requests."""
    messages = [(str(message.get("role")), _text(message.get("content"))) for message in body.get("messages", [])]
    prompt = "\n".join(text for _, text in messages)
    shape = body.get("response_format") or {}
    value: dict[str, Any]
    asks_json = shape.get("type") in ("json_object", "json_schema") or "JSON" in prompt
    if '"decisions"' in prompt:
        value = {"decisions": _decisions(prompt)}
    elif '{"same": [' in prompt:
        value = {"same": [pair["n"] for pair in _lines(prompt) if set(stems(pair["a"])) == set(stems(pair["b"]))]}
    elif '{"query": ' in prompt:
        value = {"query": " ".join(word for word in _WORD.findall(_QUESTION.findall(prompt)[-1][1]) if word.lower() not in STOP)}
    elif '"memories"' in prompt:
        value = {"memories": _facts(prompt, messages)}
    elif "summar" in prompt.lower():
        value = {"summary": _summary(prompt, messages)}
        if not asks_json:
            return str(value["summary"])
    elif asks_json:
        value = {}
    else:
        known = " ".join(text for _, text in messages[:-1])[:4000]
        return f"You said: {messages[-1][1] if messages else ''}\nI know: {known}"
    schema = (shape.get("json_schema") or {}).get("schema")
    return json.dumps(_filled(schema, value, schema) if schema else value, ensure_ascii=False)


def _text(content: Any) -> str:
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")


def _lines(prompt: str) -> list[dict[str, Any]]:
    """Return the messages in the prompt, excluding those in its context section."""
    found: list[dict[str, Any]] = []
    for line in _LINE.findall(_CONTEXT.sub("", prompt)):
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def _facts(prompt: str, messages: list[tuple[str, str]]) -> list[dict[str, Any]]:
    lines = _lines(prompt) or [{"n": 1, "role": "user", "text": next((text for role, text in reversed(messages) if role == "user"), "")}]
    return [
        {
            "text": f"{str(line['role']).capitalize()} said: {line['text'][:500]}",
            "type": "episodic" if "yesterday" in line["text"].lower() else "semantic",
            "topics": sorted(set(stems(line["text"])), key=lambda stem: (-len(stem), stem))[:3],
            "entities": list(dict.fromkeys(_NAME.findall(line["text"])))[:4],
            "event_date": str(line["at"])[:10] if "at" in line and "yesterday" in line["text"].lower() else None,
            "messages": [line["n"]],
        }
        for line in lines
        if len(stems(line["text"])) >= 2
    ]


def _decisions(prompt: str) -> list[dict[str, Any]]:
    """Return NONE for notes that match a nearby one, and ADD for all others."""
    kept = {line["k"]: stems(line["text"]) for line in map(json.loads, _KEPT.findall(prompt))}
    decisions: list[dict[str, Any]] = []
    for note in map(json.loads, _LINE.findall(prompt)):
        same = [k for k in note["near"] if kept[k] == stems(note["text"])]
        decisions.append({"n": note["n"], "action": "NONE" if same else "ADD", "of": same[:1]})
    return decisions


def _summary(prompt: str, messages: list[tuple[str, str]]) -> str:
    previous = _SUMMARY.search(prompt)
    lines = _lines(prompt) or [{"role": role, "text": text} for role, text in messages if role == "user"]
    said = "; ".join(f"{line['role']}: {' '.join(line['text'].split()[:8])}" for line in lines)
    old = f"{previous[2].removeprefix('Summary: ')[:600]} | " if previous else ""
    return f"Summary: {old}{said}"[:1500]


def _filled(schema: Any, value: Any, root: Any) -> Any:
    """Complete `value` to match `schema`, with minimal values for missing properties."""
    if "$ref" in schema:
        return _filled(root["$defs"][schema["$ref"].rsplit("/", 1)[-1]], value, root)
    options = schema.get("anyOf")
    if options:
        return value if value is not None or {"type": "null"} in options else _filled(options[0], None, root)
    kind = schema.get("type")
    if kind == "object":
        given = value if isinstance(value, dict) else {}
        return {name: _filled(part, given.get(name), root) for name, part in schema.get("properties", {}).items()}
    if kind == "array":
        return [_filled(schema.get("items", {}), item, root) for item in value] if isinstance(value, list) else []
    if value is not None:
        return value
    if "enum" in schema:
        return schema["enum"][0]
    return {"string": "text", "integer": 1, "number": 1.0, "boolean": True}.get(str(kind))
