"""Find the messages that support a fact.

A message supports a fact if it contains the fact's numbers, names and half of its content words:

- Names may come from earlier messages.
- For "she is a jazz musician", the message must contain "jazz" or "musician".
- A short answer is combined with the two messages before it.
- If only the assistant uses the words, the person must answer or agree.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from agent_memory.features.extraction.fact_wording import Claim, Wording, joined
from agent_memory.features.sessions.codec import StoredMessage
from agent_memory.foundation.text.languages.filler import is_filler
from agent_memory.foundation.text.languages.questions import is_bare_question
from agent_memory.foundation.text.normalization import normal_text
from agent_memory.foundation.text.passages.sentences import split_sentences
from agent_memory.foundation.text.prompt_marks import PROGRAM_ROLES, TOOL_ROLES
from agent_memory.foundation.text.statements import worth_asking
from agent_memory.foundation.text.terms import fold, words

# Read an answer together with this many messages before it.
_REACH = 2
# A message with at most this many content words counts as an answer.
_SHORT = 3
# The share of a fact's words that its messages must contain. `_OWN_SHARE` is enough if earlier messages have the rest.
_SHARE = 0.5
_OWN_SHARE = 1 / 3
_MOST_TOGETHER = 3
_MOST_TRIED = 8
# Part of a message counts as a quotation if it has at least this many words. A whole message always counts.
_QUOTED_WORDS = 4

_NO = "no nope nah nein non nee nej nie нет не não nao hayır hayir"
_DENIAL_WORDS = frozenset(_NO.split())
_YES = """
yes yeah yep yup correct right exactly indeed true absolutely definitely ja jawohl jep genau stimmt richtig oui ouais exact exactement
si claro exacto correcto sim certo exato da verno vero esatto tak zgadza klopt inderdaad evet dogru да верно точно はい そう うん
对 是 是的 没错 對 네 예 맞아 맞아요 نعم صحيح हाँ हां
"""
_ASSENT_WORDS = frozenset(map(fold, _YES.split()))
_ASSISTANT = re.compile(r"assist|asist|助手|アシスタント|помощник|어시스턴트|비서|المساعد", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ExtractionMessage:
    """A message to extract facts from.

    `text` has its secrets removed. `pictures` contains image descriptions from a model.
    """

    stored: StoredMessage
    text: str
    pictures: tuple[str, ...] = ()
    is_document: bool = False

    @property
    def id(self) -> str:
        return self.stored.message.id

    @property
    def role(self) -> str:
        return self.stored.message.role

    @property
    def stated_at(self) -> datetime:
        return self.stored.message.created_at

    @property
    def states(self) -> bool:
        """True unless the message comes from a program or tool. Always True for documents."""
        return self.is_document or (self.role not in PROGRAM_ROLES and self.role not in TOOL_ROLES)

    @property
    def source(self) -> Literal["user", "assistant", "tool"]:
        return "tool" if self.is_document else "assistant" if self.role == "assistant" else "user"


class Grounds:
    """Finds messages that support facts.

    If `translated` is True, facts and messages are in different languages. In that case, check only
    numbers or, if there are none, a single word or name.
    """

    def __init__(
        self, messages: Sequence[ExtractionMessage], before: Sequence[ExtractionMessage] = (), *, translated: bool = False
    ) -> None:
        self._messages = [*before, *messages]
        self._first = len(before)
        self._translated = translated
        self._wordings = [
            Wording("\n".join((message.text, *message.pictures)), message.stated_at, message.role) for message in self._messages
        ]
        self._says = [message.states for message in self._messages]
        self._usable = [index for index in range(self._first, len(self._messages)) if self._says[index] and self._tells(index)]

    def find(self, text: str, entities: Sequence[str], cited: Sequence[int]) -> list[int]:
        """Return the batch positions (from 0) of messages that support a fact, or [] to reject it.

        Prefer the cited messages if they support the fact, unless the model cited all or none.
        Otherwise, look for one message from a person, or up to three messages that support the
        fact together.
        """
        claim = Claim.of(text, entities)
        if claim.is_empty or not self._usable:
            return []
        chosen = [self._first + place for place in cited if self._first + place in self._usable]
        if cited and not chosen:
            return []
        whole = len(chosen) > 1 and len(chosen) == len(self._usable)
        if not chosen or whole or not self._holds(claim, chosen):
            chosen = self._nearest(claim)
        if not chosen:
            return []
        chosen = self._witnesses(claim, chosen)
        if self._quotes_assistant(text, chosen):
            return []
        return sorted(index - self._first for index in chosen)

    def needs_pictures(self, text: str, entities: Sequence[str]) -> bool:
        """True if one of the fact's words appears only in an image description."""
        claim = Claim.of(text, entities)
        text_wording, picture_wording = (
            Wording("\n".join(texts), self._messages[-1].stated_at)
            for texts in zip(*((message.text, "\n".join(message.pictures)) for message in self._messages), strict=True)
        )
        return any(picture_wording.holds_word(word) and not text_wording.holds_word(word) for word in claim.words | claim.names)

    def supported(self, text: str) -> str:
        """Return the fact with unsupported sentences removed."""
        sentences = split_sentences(text)
        if len(sentences) < 2 or self._translated:
            return text
        stating_wordings = [wording for wording, says in zip(self._wordings, self._says, strict=True) if says]
        whole = joined(stating_wordings) if stating_wordings else None
        supported_sentences = [sentence for sentence in sentences if whole is not None and self._has_some(Claim.of(sentence), whole)]
        return text if len(supported_sentences) == len(sentences) else " ".join(supported_sentences)

    def _tells(self, index: int) -> bool:
        """True if a message can support a fact. Bare questions cannot.

        Thanks and greetings can, but only in reply to the assistant.
        """
        text = self._messages[index].text
        if is_bare_question(text):
            return False
        return worth_asking(text) or any(not self._is_witness(before) for before in self._before(index)[-1:])

    def _has_some(self, claim: Claim, wording: Wording) -> bool:
        """True if the messages contain all of the claim's numbers and names.

        If it has neither, a single word is enough.
        """
        if claim.is_empty:
            return True
        if not all(map(wording.holds_number, claim.numbers)) or not all(map(wording.holds_word, claim.names)):
            return False
        return bool(claim.numbers or claim.names) or any(map(wording.holds_word, claim.words))

    def _nearest(self, claim: Claim) -> list[int]:
        ranked = sorted(self._usable, key=lambda index: (self._count_matches(claim, self._wordings[index]), index), reverse=True)
        for index in [index for index in ranked if self._is_witness(index)][:_MOST_TRIED]:
            if self._count_matches(claim, self._wordings[index]) and self._holds(claim, [index]):
                return [index]
        answers = [index for index in reversed(self._usable) if self._is_witness(index) and self._is_short(index)][:_MOST_TRIED]
        for index in answers:
            if self._holds(claim, [index]):
                return [index]
        together: list[int] = []
        best = 0
        for _ in range(_MOST_TOGETHER):
            gains = [
                (self._count_matches(claim, joined([self._wordings[i] for i in [*together, index]])), index)
                for index in ranked[:_MOST_TRIED]
            ]
            count, index = max(gains, key=lambda gain: (gain[0], self._is_witness(gain[1]), gain[1]), default=(0, -1))
            if count <= best:
                break
            best, together = count, [*together, index]
            if self._holds(claim, together):
                return together
        return []

    def _holds(self, claim: Claim, chosen: Sequence[int]) -> bool:
        own = joined([self._wordings[index] for index in chosen])
        near_indexes = sorted({near for index in chosen for near in self._before(index)} | set(chosen))
        near = joined([self._wordings[index] for index in near_indexes])
        short = all(self._is_short(index) for index in chosen)
        if not all(own.holds_number(number) or (short and near.holds_number(number)) for number in claim.numbers):
            return False
        if self._translated:
            return bool(claim.numbers) or any(near.holds_word(word) for word in claim.words | claim.names) or not _same_script(claim, near)
        earlier = joined([w for w, says in zip(self._wordings[: max(chosen) + 1], self._says, strict=False) if says])
        if not all(earlier.holds_word(name) for name in claim.names):
            return False
        if claim.kinds and not any(map(near.holds_word, claim.kinds)):
            return False
        total = len(claim.words) + len(claim.numbers)
        own_count = sum(map(own.holds_word, claim.words)) + sum(map(own.holds_number, claim.numbers))
        if own_count >= total * _SHARE:
            return bool(total) or any(map(own.holds_word, claim.names))
        words_near = sum(map(near.holds_word, claim.words))
        if words_near < len(claim.words) * _SHARE or not (short or own_count >= total * _OWN_SHARE):
            return False
        peoples = joined([self._wordings[index] for index in near_indexes if self._is_witness(index) or index in chosen])
        if sum(map(peoples.holds_word, claim.words)) >= len(claim.words) * _SHARE:
            return True
        return any(self._answers(index, claim) for index in chosen)

    def _answers(self, index: int, claim: Claim) -> bool:
        """True if the message answers the assistant's question or confirms its statement.

        "No" only confirms a denial.
        """
        before = self._before(index)[-1:]
        if not self._is_witness(index) or not before or self._is_witness(before[0]):
            return False
        answer_words = words(self._messages[index].text)
        if answer_words[:1] and answer_words[0] in _DENIAL_WORDS:
            return claim.denies
        if "?" in (question := self._messages[before[0]].text) or "？" in question or "؟" in question:
            return not is_filler(self._messages[index].text) or not _ASSENT_WORDS.isdisjoint(answer_words)
        return not _ASSENT_WORDS.isdisjoint(answer_words[:2])

    def _count_matches(self, claim: Claim, wording: Wording) -> int:
        return sum(map(wording.holds_word, claim.words | claim.names)) + sum(map(wording.holds_number, claim.numbers))

    def _witnesses(self, claim: Claim, chosen: Sequence[int]) -> list[int]:
        """Return the chosen messages. Drop people's messages if none supports the claim."""
        people = [index for index in chosen if self._is_witness(index)]
        if len(people) in (0, len(chosen)):
            return list(chosen)
        if any(self._count_matches(claim, self._wordings[index]) or self._answers(index, claim) for index in people):
            return list(chosen)
        return [index for index in chosen if not self._is_witness(index)]

    def _quotes_assistant(self, text: str, chosen: Sequence[int]) -> bool:
        """True if a fact repeats the assistant's words without mentioning the assistant."""
        if any(map(self._is_witness, chosen)) or _ASSISTANT.search(text):
            return False
        quoted, long = normal_text(text), len(words(text)) >= _QUOTED_WORDS
        whole = [normal_text(self._messages[index].text) for index in chosen]
        return any(quoted == message_text or (long and quoted in message_text) for message_text in whole)

    def _before(self, index: int) -> list[int]:
        earlier_indexes = [earlier for earlier in range(max(index - 2 * _REACH, 0), index) if self._says[earlier]]
        return earlier_indexes[-_REACH:]

    def _is_witness(self, index: int) -> bool:
        return self._says[index] and self._messages[index].role != "assistant"

    def _is_short(self, index: int) -> bool:
        return len(self._wordings[index].content) <= _SHORT


def _same_script(claim: Claim, near: Wording) -> bool:
    """True if both texts, or neither, use Latin letters."""
    return any(map(str.isascii, claim.words | claim.names)) == any(map(str.isascii, near.content))
