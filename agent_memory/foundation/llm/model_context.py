"""Record each model's context size and where it came from."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

from agent_memory.foundation.core.errors import ContextExceeded
from agent_memory.foundation.llm.context_refusals import ContextOverflow

Source = Literal["set", "told", "learned", "assumed"]
# After this time, ask again and discard the learned size: a restarted server may have a different context size.
LEARNED_SECONDS = 3600.0
# Ask sooner if the server did not answer, or had not loaded its model.
RETRY_SECONDS = 60.0
# A smaller limit must be a misreading.
LEAST_TOKENS = 128
# Smaller requests would not be faster, since the instructions have several times as many tokens.
LEAST_REQUEST_LIMIT = 128
_MOST_REFUSED = 256
# After this many timely answers, requests to a slow model grow by half. This number doubles after each timeout.
_ANSWERS_BEFORE_MORE = 2
_MOST_ANSWERS_BEFORE_MORE = 64
_MOST_RATE = 16.0


@dataclass(frozen=True, slots=True)
class ContextLimit:
    """The maximum tokens for prompt and answer combined, as counted by the model server.

    `source` is `set` (by the operator), `told` (by the server), `learned` (from a rejected
    request), or `assumed` (from the model's name).
    """

    tokens: int
    source: Source

    @property
    def certain(self) -> bool:
        """True if the server is known to reject larger requests."""
        return self.source != "assumed"


class ModelContext:
    """What this process knows about a model's context size on one server."""

    def __init__(
        self, where: str, model: str, *, assumed: int, configured: int | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`where` is the server, `configured` the operator's limit, and `assumed` the fallback."""
        self.where = where
        self.model = model
        self._configured = configured
        self._assumed = assumed
        self._clock = clock
        self._reported: int | None = None
        self._guessed: int | None = None
        self._ask_at = 0.0
        self._learned: int | None = None
        self._learned_until = 0.0
        self._request_limit = 0
        self._request_limit_until = 0.0
        self._answered = 0
        self._answers_before_more = _ANSWERS_BEFORE_MORE
        self._rate = 1.0
        self._most_accepted = 0
        self._refused: dict[bytes, float] = {}

    @property
    def limit(self) -> ContextLimit:
        """The current limit.

        A smaller limit learned from a rejected request overrides the operator's limit, which
        overrides the reported limit.
        """
        reported = self._reported if self._configured is None else self._configured
        if self._learned is not None and self._clock() < self._learned_until and (reported is None or self._learned < reported):
            return ContextLimit(self._learned, "learned")
        if self._configured is not None:
            return ContextLimit(self._configured, "set")
        if self._reported is not None:
            return ContextLimit(self._reported, "told")
        return ContextLimit(self._assumed if self._guessed is None else min(self._guessed, self._assumed), "assumed")

    @property
    def window(self) -> int:
        """The limit, measured in tokens as this server counts them.

        It is lower than `limit.tokens` if the model server counts more tokens.
        """
        return int(self.limit.tokens / self._rate)

    @property
    def wants_asking(self) -> bool:
        """True if it is time to ask for the context size."""
        return self._clock() >= self._ask_at

    def note_limit(self, tokens: int | None, *, guess: bool = False) -> None:
        """Store the reported limit, or None. If `guess` is true, it is only an estimate."""
        usable = tokens if tokens is not None and tokens >= LEAST_TOKENS else None
        self._reported, self._guessed = (None, usable) if guess else (usable, None)
        self._ask_at = self._clock() + (LEARNED_SECONDS if self._reported is not None else RETRY_SECONDS)

    def postpone_asking(self) -> None:
        """Do not ask again for `LEARNED_SECONDS`. Use this for servers that never report a size."""
        self._ask_at = self._clock() + LEARNED_SECONDS

    @property
    def request_limit(self) -> int | None:
        """The maximum number of message tokens per request after a timeout.

        None means no limit.
        """
        return self._request_limit if self._clock() < self._request_limit_until else None

    def learn_timeout(self, message_tokens: int) -> None:
        """Lower the request limit to half of `message_tokens` after a request timed out."""
        self._answered, self._answers_before_more = 0, min(2 * self._answers_before_more, _MOST_ANSWERS_BEFORE_MORE)
        self.take_over_request_limit(max(message_tokens // 2, LEAST_REQUEST_LIMIT), LEARNED_SECONDS)

    def learn_answer(self, message_tokens: int) -> bool:
        """Record that an answer arrived in time. Return True if the request limit was raised."""
        request_limit = self.request_limit
        if request_limit is None or message_tokens < request_limit * 3 // 4:
            return False
        self._answered += 1
        if self._answered < self._answers_before_more:
            return False
        self._answered, self._request_limit = 0, request_limit * 3 // 2
        return True

    def take_over_request_limit(self, tokens: int, seconds: float) -> None:
        """Adopt another process's request limit for `seconds`, unless a smaller one applies."""
        request_limit = self.request_limit
        if request_limit is None or tokens < request_limit:
            self._request_limit, self._request_limit_until = tokens, self._clock() + seconds

    def take_over(self, tokens: int, seconds: float) -> None:
        """Adopt another process's limit for `seconds`, unless a smaller learned limit applies."""
        if self._learned is None or self._clock() >= self._learned_until or tokens < self._learned:
            self._learned, self._learned_until = tokens, self._clock() + seconds

    def learn_refusal(self, overflow: ContextOverflow, ours: int, *, answer: int = 0) -> None:
        """Learn from a rejected request.

        `ours` is this server's token count for the prompt. `answer` is the number of tokens
        reserved for the answer.
        """
        if overflow.sent is not None and ours > 0:
            self._rate = min(max(self._rate, overflow.sent / ours), _MOST_RATE)
        limit = overflow.limit if overflow.limit is not None and overflow.limit >= LEAST_TOKENS else None
        if limit is None:
            limit = max(int(ours * self._rate) // 2, self._most_accepted, LEAST_TOKENS)
        elif overflow.sent is None and limit >= ours * self._rate + answer:
            # By our count it fits, so the server's tokens are shorter.
            self._rate = min(limit / max(ours, 1) * 1.1, _MOST_RATE)
        self._learned, self._learned_until = limit, self._clock() + LEARNED_SECONDS

    def learn_acceptance(self, model_count: int, own_count: int) -> None:
        """Record the token counts of both servers for an accepted prompt.

        `model_count` is 0 if the model server did not report it.
        """
        self._most_accepted = max(self._most_accepted, model_count or own_count)
        if model_count > 0 and own_count > 0:
            ratio = model_count / own_count
            # The rate rises fast and falls slowly: a batch that is too small costs a call, and a batch that is too
            # large is refused.
            self._rate = min(max(ratio, 0.8 * self._rate + 0.2 * ratio, 1.0), _MOST_RATE)

    def no_room(self) -> ContextExceeded:
        """Return the error to raise for a request that cannot fit."""
        limit = self.limit
        return ContextExceeded(
            f"{self.model} at {self.where} accepts {limit.tokens} tokens ({limit.source}), which leaves no space after the instructions",
            reason="too_long",
        )

    def remember_refused(self, prompt: bytes) -> None:
        if len(self._refused) >= _MOST_REFUSED:
            del self._refused[next(iter(self._refused))]
        self._refused[prompt] = self._clock() + LEARNED_SECONDS

    def refuses(self, prompt: bytes) -> bool:
        """True if the server recently rejected this request, so it should not be sent again."""
        return self._refused.get(prompt, 0.0) > self._clock()


def fingerprint(*parts: str) -> bytes:
    digest = blake2b(digest_size=16)
    for part in parts:
        digest.update(f"{len(part)}:".encode())
        digest.update(part.encode("utf-8", "replace"))
    return digest.digest()
