"""Add examples to the OpenAPI document. Together, they tell the story of one user.

Server-generated ids (changes, views, operations, keys) have no examples.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agent_memory.feature_list import FEATURES
from agent_memory.foundation.core.feature import Example, import_name


def _read_story() -> list[Example]:
    story: list[Example] = []
    for entry in json.loads((Path(__file__).parent / "story.json").read_text(encoding="utf-8")):
        if entry == "features":
            story += [example for feature in FEATURES if feature.examples for example in import_name(feature.examples)]
        else:
            story.append(Example(**entry))
    return story


STORY = _read_story()


def add_examples(document: dict[str, Any]) -> None:
    story = {example.operation_id: example for example in STORY}
    for operation in (operation for methods in document["paths"].values() for operation in methods.values()):
        example = story.get(operation["operationId"])
        if example is None:
            continue
        for parameter in operation.get("parameters", ()):
            if parameter["name"] in example.parameters:
                parameter["example"] = example.parameters[parameter["name"]]
        for content in operation.get("requestBody", {}).get("content", {}).values():
            content["example"] = example.body
