"""List all intended differences from the contract, grouped by reason.

Each line is output from `differences`, with braces for alternatives: `{a,b}: x` means `a: x` and
`b: x`. The contract test fails if a difference is missing here or a line no longer applies.
"""

from __future__ import annotations

import re
from itertools import product

_FILTERS = "{SessionId,UserId,Namespace,Topics,Entities,ExtractionStrategy}"
_DATES = "{CreatedAt,LastAccessed,EventDate}"
_RECORDS = "{MemoryRecord,ClientMemoryRecord,ExtractedMemoryRecord}"
_SESSION = "{GET,PUT,DELETE} /v1/working-memory/{{session_id}}: session_id"
_MEMORY = "{GET,PATCH} /v1/long-term-memory/{{memory_id}}: memory_id"
_EXACT = 2**53 - 1
_CENTURY = 100 * 366 * 24 * 3600

REASONS: dict[str, tuple[str, ...]] = {
    "who asks for a prompt in the format of an API gets messages of that API": (
        "MemoryPromptResponse.messages: type array<Message|SystemMessage|ChatMessage>",
    ),
    "an id, a name or a tag has a largest size, so that keys, indexes and logs have one": (
        f"{_SESSION}: maxLength 512",
        f"{_MEMORY}: maxLength 512",
        "{GET,DELETE} /v1/working-memory/{{session_id}}: {namespace,user_id}: maxLength 512",
        "{GET,PUT} /v1/working-memory/{{session_id}}: model_name: maxLength 256",
        "GET /v1/working-memory/: {namespace,user_id}: maxLength 512",
        "DELETE /v1/long-term-memory: memory_ids: items: maxLength 512",
        "POST /v1/long-term-memory/compact: {namespace,user_id}: maxLength 512",
        "POST /v1/long-term-memory/forget: {namespace,user_id,session_id}: maxLength 512",
        "GET /v1/summary-views/{{view_id}}/partitions: {memory_type,namespace,session_id,user_id}: maxLength 512",
        "GET /v1/tasks/{{task_id}}: task_id: maxLength 512",
        "RunSummaryViewRequest.task_id: maxLength 512",
        f"{_RECORDS}.{{id,namespace,user_id,session_id,extraction_strategy,extracted_from: items}}: maxLength 512",
        f"{{{_RECORDS[1:-1]},EditMemoryRecordRequest}}.{{topics,entities}}: {{items: maxLength 256,maxItems 64}}",
        "EditMemoryRecordRequest.{namespace,user_id,session_id}: maxLength 512",
        "{UpdateWorkingMemory,WorkingMemoryRequest}.{namespace,user_id}: maxLength 512",
        "WorkingMemoryRequest.session_id: maxLength 512",
        "MemoryMessage.id: maxLength 512",
        "MemoryMessage.role: maxLength 64",
        f"{_FILTERS}.{{eq,ne,startswith,any: items,all: items}}: maxLength 512",
        f"{{{_FILTERS[1:-1]},MemoryType}}.{{any,all}}: maxItems 1000",
    ),
    "refused by the archived server too, at run time only: our document says so": (
        f"{_RECORDS}.{{id,text}}: minLength 1",
        "EditMemoryRecordRequest.text: minLength 1",
        f"{_FILTERS}.startswith: minLength 1",
        f"{{{_FILTERS[1:-1]},MemoryType}}.{{any,all}}: minItems 1",
        f"{_DATES}.between: {{minItems,maxItems}} 2",
    ),
    "an empty id or name means nothing: in the archived server it never matched, or stood for everybody": (
        f"{_SESSION}: minLength 1",
        f"{_MEMORY}: minLength 1",
        "DELETE /v1/long-term-memory: memory_ids: items: minLength 1",
        "GET /v1/tasks/{{task_id}}: task_id: minLength 1",
        "{RunSummaryViewRequest.task_id,WorkingMemoryRequest.session_id,MemoryMessage.id,MemoryMessage.role}: minLength 1",
        f"{_RECORDS}.{{extraction_strategy,extracted_from: items}}: minLength 1",
        f"{_FILTERS}.{{eq,ne,any: items,all: items}}: minLength 1",
    ),
    "a filter's own field stays its own: naming another one redirected it to other data": (
        "CreatedAt.field: enum ['created_at']",
        "Entities.field: enum ['entities']",
        "EventDate.field: enum ['event_date']",
        "ExtractionStrategy.field: enum ['extraction_strategy']",
        "LastAccessed.field: enum ['last_accessed']",
        "MemoryType.field: enum ['memory_type']",
        "MemoryType.enum_class: type null",
        "Namespace.field: enum ['namespace']",
        "SessionId.field: enum ['session_id']",
        "Topics.field: enum ['topics']",
        "UserId.field: enum ['user_id']",
    ),
    "a word in a filter that is not known is refused: ignoring it finds what was not asked for": (
        f"{{{_FILTERS[1:-1]},{_DATES[1:-1]},MemoryType}}: unknown fields refused",
        f"{_DATES}.inclusive: enum ['both'; 'neither'; 'left'; 'right']",
    ),
    "refused by name where the archived server fails with an internal error": (
        "MemoryType.{eq,ne}: type MemoryTypeEnum",
        "MemoryType.{any,all}: type array<MemoryTypeEnum>",
        "SearchRequest.distance_threshold: minimum 0",
        "SearchRequest.offset: maximum 1000000",
        "GET /v1/working-memory/: offset: maximum 1000000",
    ),
    "an internal error is no answer to rely on": (
        "{PUT,DELETE} /v1/working-memory/{{session_id}}: 500: not documented",
        "PATCH /v1/long-term-memory/{{memory_id}}: 500: not documented",
        "POST /v1/long-term-memory/{compact,forget,search}: 500: not documented",
        "POST /v1/memory/prompt: 500: not documented",
        "POST /v1/summary-views/{{view_id}}/partitions/run: 500: not documented",
    ),
    "a number has the range in which Redis, JavaScript and the calendar keep it exact, and the sign that has a meaning": (
        "{GET,PUT} /v1/working-memory/{{session_id}}: context_window_max: minimum 0",
        f"{{GET,PUT}} /v1/working-memory/{{{{session_id}}}}: context_window_max: maximum {_EXACT}",
        f"GET /v1/working-memory/{{{{session_id}}}}: recent_messages_limit: {{minimum {1 - 2**31},maximum {2**31 - 1}}}",
        f"WorkingMemoryRequest.context_window_max: {{minimum 0,maximum {_EXACT}}}",
        f"UpdateWorkingMemory.tokens: {{minimum 0,maximum {_EXACT}}}",
        f"UpdateWorkingMemory.ttl_seconds: {{minimum -{_CENTURY},maximum {_CENTURY}}}",
        f"{{MemoryRecord,ExtractedMemoryRecord}}.access_count: maximum {_EXACT}",
        "CreateSummaryViewRequest.time_window_days: maximum 36500",
        "POST /v1/long-term-memory/forget: limit: {minimum 0,maximum 1000000}",
        "SearchRequest.recency_half_life_{last_access,created}_days: exclusiveMinimum 0",
    ),
    "messages are taken as chat APIs have them, and come back as they were sent; the content of an answer is always a string": (
        "MemoryMessage.content: type string|array<map<any>>",
        "MemoryMessage.content: nullable true",
        "{MemoryMessage,Message}: unknown fields kept",
    ),
    "memories can be ways of doing something too; only who says that it knows the type is shown it": (
        "MemoryTypeEnum: enum ['episodic'; 'message'; 'procedural'; 'semantic']",
    ),
}


def expanded(line: str) -> list[str]:
    """Expand the alternatives in braces.

    `{{x}}` means a literal `{x}`. `;` and `'` stand for `,` and `"` in JSON.
    """
    parts = re.split(r"(\{\{\w+\}\}|\{[^{}]+\})", line)
    choices = [[part[1:-1]] if part.startswith("{{") else part[1:-1].split(",") if part.startswith("{") else [part] for part in parts]
    return ["".join(choice).replace(";", ",").replace("'", '"') for choice in product(*choices)]


EXCEPTIONS: dict[str, str] = {line: reason for reason, lines in REASONS.items() for pattern in lines for line in expanded(pattern)}
"""Intended differences, each with its reason."""
