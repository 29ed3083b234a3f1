"""Example requests for the procedure operations in the API documentation."""

from __future__ import annotations

from agent_memory.foundation.core.feature import Example

_ADA = {"user_id": "ada"}
_SESSION = {"session_id": "trip-to-lisbon", **_ADA}

EXAMPLES: tuple[Example, ...] = (
    Example(
        "create_procedure_v1_procedures_post",
        {},
        {
            "user_id": "ada",
            "when_to_use": "A flight is to be booked for a trip.",
            "steps": ["Search flights for the dates.", "Ask which one to take.", "Book it and send the confirmation."],
            "tools": ["search_flights", "book_flight"],
        },
    ),
    Example("list_procedures_v1_procedures_get", _ADA),
    Example("search_procedures_v1_procedures_search_post", {}, {"user_id": "ada", "situation": "Book me a flight to Oslo", "limit": 3}),
    Example("get_procedure_v1_procedures__procedure_id__get"),
    Example("update_procedure_v1_procedures__procedure_id__patch", {}, {"pitfalls": ["Night flights were refused."]}),
    Example(
        "give_procedure_feedback_v1_procedures__procedure_id__feedback_post",
        {},
        {"helped": True, "score": 0.9, "comment": "Booked at once."},
    ),
    Example("get_procedure_history_v1_procedures__procedure_id__history_get"),
    Example("undo_procedure_change_v1_procedures__procedure_id__undo_post"),
    Example(
        "mark_session_result_v1_working_memory__session_id__result_patch",
        _SESSION,
        {"result": "success", "score": 1.0, "comment": "The flight is booked."},
    ),
    Example("get_session_result_v1_session_results__session_id__get", _SESSION),
    Example(
        "count_tool_call_v1_tools_memory_post",
        {},
        {"user_id": "ada", "tool": "search_flights", "arguments": {"to": "Oslo"}, "success": True, "duration_ms": 420, "cost": 0.002},
    ),
    Example("list_tool_memory_v1_tools_memory_get", {"user_id": "ada", "tool": "search_flights"}),
    Example("delete_procedure_v1_procedures__procedure_id__delete"),
)
