"""The conversation in a request, with an id for each message.

Programs send the entire conversation in every request. A message's id is a digest of all messages
up to and including it, so repeating a request stores nothing twice. If the same words occur later
in the conversation, they are a new message.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from pydantic_core import to_json

from agent_memory_client.models._types import is_blank, now
from agent_memory_client.models.llm.requests import Body, Message, with_pictures, without_files
from agent_memory_client.models.messages import MAX_APPENDED_MESSAGES, MemoryMessage
from agent_memory_client.models.prompt import MAX_SHOWN_MESSAGES, ShownMessages, text_of

_ID_BYTES = 12


class Conversation:
    """The messages in a request, oldest first, and their ids.

    `new` contains the messages after the model's last reply, with their images and ids. `answer_id`
    is the id of the reply to this request.
    """

    def __init__(self, body: Body, messages: Sequence[Message]) -> None:
        digest = blake2b(to_json([body.get("previous_response_id"), body.get("conversation")]), digest_size=_ID_BYTES)
        self.messages = [{**message, "content": _content(message)} for message in messages]
        self.ids: list[str] = []
        for message in self.messages:
            before = digest.copy()
            digest.update(to_json(message))
            if message["role"] == "assistant":
                # The program may send the answer back in a different form from the stored one.
                before.update(b"answer")
            self.ids.append((before if message["role"] == "assistant" else digest).hexdigest())
        digest.update(b"answer")
        self.answer_id = digest.hexdigest()
        by_model = [message["role"] == "assistant" for message in self.messages]
        # Assistant messages at the end are the beginning of the answer.
        end = len(by_model) - by_model[::-1].index(False) if False in by_model else 0
        last = max((place for place in range(end) if by_model[place]), default=-1)
        new = slice(max(last + 1, end + 1 - MAX_APPENDED_MESSAGES), end)  # the answer is also appended
        new_messages = (
            _with_pictures(own_message, message) for own_message, message in zip(self.messages[new], messages[new], strict=True)
        )
        self.new = [pair for pair in zip(new_messages, self.ids[new], strict=True) if _says_something(pair[0])]

    @property
    def default_session_id(self) -> str:
        """The default session id. Requests that start with the same message get the same id."""
        return f"chat-{self.ids[0] if self.ids else self.answer_id}"

    def shown_messages(self, session_id: str | None = None) -> ShownMessages:
        """Return the ids of the latest messages. A prompt omits memories derived only from them."""
        return ShownMessages(session_id=session_id or self.default_session_id, message_ids=self.ids[-MAX_SHOWN_MESSAGES:])


def last_question(messages: Sequence[Message]) -> str:
    """Return the text of the user's last message that contains text, or ""."""
    texts = (text_of(message["content"]) for message in reversed(messages) if message["role"] == "user")
    return next((text for text in texts if not is_blank(text)), "")


def stored_message(message: Message, message_id: str) -> MemoryMessage:
    """Convert a message for storage in a session. Raises ValidationError if it is invalid."""
    return MemoryMessage.model_validate({**message, "id": message_id, "created_at": now()})


def _content(message: Message) -> Any:
    content = message.get("content")
    return without_files(content) if isinstance(content, list) else content


def _with_pictures(own_message: Message, message: Message) -> Message:
    content = message.get("content")
    return {**own_message, "content": with_pictures(content)} if isinstance(content, list) else own_message


def _says_something(message: Message) -> bool:
    content = message["content"]
    is_empty = is_blank(content) if isinstance(content, str) else not content
    # Model APIs refuse a conversation in which a tool call has no result, even an empty one.
    return not is_empty or bool(message.get("tool_calls") or message.get("tool_call_id"))
