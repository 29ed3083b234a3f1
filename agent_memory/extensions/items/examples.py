"""Example requests for the item operations in the API documentation."""

from __future__ import annotations

from agent_memory.foundation.core.feature import Example

_ADA = {"user_id": "ada"}
_WHERE = {**_ADA, "path": ["preferences", "food"], "key": "breakfast"}
_PUT = {"path": ["preferences", "food"], "key": "breakfast", "value": {"text": "Porridge with blueberries", "stars": 4}}

EXAMPLES: tuple[Example, ...] = (
    Example("put_item", _ADA, _PUT),
    Example("get_item", _WHERE),
    Example("search_items", _ADA, {"prefix": ["preferences"], "query": "what to eat in the morning", "filter": {"stars": {"$gte": 3}}}),
    Example("list_item_namespaces", _ADA, {"match_conditions": [{"match_type": "prefix", "path": ["preferences", "*"]}]}),
    Example(
        "run_item_batch",
        _ADA,
        {
            "operations": [
                {"op": "get", "path": ["preferences", "food"], "key": "breakfast"},
                {"op": "put", "path": ["preferences", "food"], "key": "lunch", "value": {"text": "Lentil soup"}, "ttl_minutes": 1440},
                {"op": "search", "prefix": ["preferences"], "limit": 5},
            ]
        },
    ),
    Example("delete_item", _WHERE),
)
