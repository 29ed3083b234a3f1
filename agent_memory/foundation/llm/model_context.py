"""What is known of a model's context: how many tokens a request to it may have, from where that is known, and how its server counts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

from agent_memory.foundation.core.errors import ContextExceeded
from agent_memory.foundation.llm.context_refusals import ContextOverflow

Source = Literal["set", "told", "learned", "assumed"]
# A server may be started anew with another context: what it said is asked again, and what was learned is forgotten, after so long.
KNOWN_SECONDS = 3600.0
# Of a server that is away, and of one that has not loaded its model yet, it is asked again sooner.
ASKED_AGAIN_SECONDS = 60.0
# No model takes less; a limit below that was misread.
LEAST_TOKENS = 128
# Less of a conversation makes a request no quicker: its instructions have several times as many tokens.
LEAST_ASKED = 128
_MOST_REFUSED = 256
# Requests that a slow model must answer before it is asked about half as much again; after each timeout twice as many.
_ANSWERS_BEFORE_MORE = 2
_MOST_ANSWERS_BEFORE_MORE = 64
_MOST_RATE = 16.0


@dataclass(frozen=True, slots=True)
class ContextLimit:
    """The tokens of prompt and answer together, by the server's count, and from where that is known.

    `set` by the operator, `told` by the server when it was asked, `learned` from a refusal, `assumed` by the model's name.
    """

    tokens: int
    source: Source

    @property
    def certain(self) -> bool:
        """Whether a request beyond it is known to be refused."""
        return self.source != "assumed"


class ModelContext:
    """The context of one model at one server, as far as this process knows it."""

    def __init__(
        self, where: str, model: str, *, assumed: int, configured: int | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`where` is the server's address without secrets; `configured` is what the operator set, `assumed` the fallback."""
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
        self._most_asked = 0
        self._most_asked_until = 0.0
        self._answered = 0
        self._answers_before_more = _ANSWERS_BEFORE_MORE
        self._rate = 1.0
        self._taken = 0
        self._refused: dict[bytes, float] = {}

    @property
    def limit(self) -> ContextLimit:
        """What is known now. A refusal is believed before anything else, and the operator before the server."""
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
        """The limit in tokens as we count them: a server whose tokens are shorter than ours has room for fewer of ours."""
        return int(self.limit.tokens / self._rate)

    @property
    def wants_asking(self) -> bool:
        """Whether it is time to ask the server."""
        return self._clock() >= self._ask_at

    def note_limit(self, tokens: int | None, *, guess: bool = False) -> None:
        """The server was asked and told its limit, nothing (None), or what points to one (`guess`)."""
        usable = tokens if tokens is not None and tokens >= LEAST_TOKENS else None
        self._reported, self._guessed = (None, usable) if guess else (usable, None)
        self._ask_at = self._clock() + (KNOWN_SECONDS if self._reported is not None else ASKED_AGAIN_SECONDS)

    def postpone_asking(self) -> None:
        """The server tells nobody; it is asked again much later."""
        self._ask_at = self._clock() + KNOWN_SECONDS

    @property
    def most_asked(self) -> int | None:
        """Tokens of new messages that one request may hold, as a timeout taught; None for as many as have room."""
        return self._most_asked if self._clock() < self._most_asked_until else None

    def learn_timeout(self, asked: int) -> None:
        """Learns from a request about `asked` tokens of messages to which no token of an answer came in time: half is asked from now on."""
        self._answered, self._answers_before_more = 0, min(2 * self._answers_before_more, _MOST_ANSWERS_BEFORE_MORE)
        self.take_over_asked(max(asked // 2, LEAST_ASKED), KNOWN_SECONDS)

    def learn_answer(self, asked: int) -> bool:
        """Learns from a request about `asked` tokens of messages that was answered in time; True when more is asked from now on.

        A model that was only loading, or busy, is slow no longer; one that stays slow is tried less and less often.
        """
        known = self.most_asked
        if known is None or asked < known * 3 // 4:
            return False
        self._answered += 1
        if self._answered < self._answers_before_more:
            return False
        self._answered, self._most_asked = 0, known * 3 // 2
        return True

    def take_over_asked(self, tokens: int, seconds: float) -> None:
        """Takes over what another process learned from a timeout, good for so many seconds more."""
        known = self.most_asked
        if known is None or tokens < known:
            self._most_asked, self._most_asked_until = tokens, self._clock() + seconds

    def take_over(self, tokens: int, seconds: float) -> None:
        """What another process learned, good for so many seconds more."""
        if self._learned is None or self._clock() >= self._learned_until or tokens < self._learned:
            self._learned, self._learned_until = tokens, self._clock() + seconds

    def learn_refusal(self, overflow: ContextOverflow, ours: int, *, answer: int = 0) -> None:
        """Learns from a refusal of a request that has `ours` tokens by our count and asked for an answer of so many.

        A refusal that names no limit halves what was sent, but no request is thought too large that is as small as one that was taken.
        """
        if overflow.sent is not None and ours > 0:
            self._rate = min(max(self._rate, overflow.sent / ours), _MOST_RATE)
        limit = overflow.limit if overflow.limit is not None and overflow.limit >= LEAST_TOKENS else None
        if limit is None:
            limit = max(int(ours * self._rate) // 2, self._taken, LEAST_TOKENS)
        elif overflow.sent is None and limit >= ours * self._rate + answer:
            # By our count it would have had room, so the server's tokens are shorter than ours.
            self._rate = min(limit / max(ours, 1) * 1.1, _MOST_RATE)
        self._learned, self._learned_until = limit, self._clock() + KNOWN_SECONDS

    def learn_acceptance(self, theirs: int, ours: int) -> None:
        """Notes that a prompt of `ours` tokens was taken, and counted as `theirs` by the server (0: it does not say)."""
        self._taken = max(self._taken, theirs or ours)
        if theirs > 0 and ours > 0:
            seen = theirs / ours
            # Up at once, down slowly: too small a batch costs a call, too large a one is refused.
            self._rate = min(max(seen, 0.8 * self._rate + 0.2 * seen, 1.0), _MOST_RATE)

    def no_room(self) -> ContextExceeded:
        """What is raised when it is plain without a call that a request has no room."""
        limit = self.limit
        return ContextExceeded(
            f"{self.model} at {self.where} takes {limit.tokens} tokens ({limit.source}), which is no room beside the instructions",
            reason="too_long",
        )

    def remember_refused(self, prompt: bytes) -> None:
        """Remembers a request that was refused."""
        if len(self._refused) >= _MOST_REFUSED:
            del self._refused[next(iter(self._refused))]
        self._refused[prompt] = self._clock() + KNOWN_SECONDS

    def refuses(self, prompt: bytes) -> bool:
        """Whether this very request was refused lately: it is not sent again."""
        return self._refused.get(prompt, 0.0) > self._clock()


def fingerprint(*parts: str) -> bytes:
    """A digest of a request."""
    digest = blake2b(digest_size=16)
    for part in parts:
        digest.update(f"{len(part)}:".encode())
        digest.update(part.encode("utf-8", "replace"))
    return digest.digest()
