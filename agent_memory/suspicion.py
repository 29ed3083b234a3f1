"""Text that reads like an instruction to a model rather than like something to remember (pure).

A list of patterns, not a judge: it knows the usual ways to give a model orders through stored text, in a few languages, and misses others.
What it finds is put aside for review, never dropped, so a false alarm costs a look; what it misses is still shown to models as quoted data.
Two strengths: overriding, hiding and leaking are suspicious whoever says them; standing orders ("from now on, always …") are what users
may well want remembered of themselves, so they count only in what users did not say.
"""

from __future__ import annotations

import re
import unicodedata

_INVISIBLE = dict.fromkeys(
    [0xAD, 0x180E, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF, *range(0x202A, 0x202F), *range(0x2066, 0x206A), *range(0xE0000, 0xE0080)]
)

_RULES = r"(?:instructions?|prompts?|rules|guidelines|directions|commands|orders|programming|safety|constraints)"
_STRONG = {
    "override": (
        rf"\b(?:ignore|disregard|forget|override|bypass|skip)\b.{{0,20}}\b(?:all|any|every|previous|prior|above|earlier|preceding|your|system"
        rf"|other|these|those)\b.{{0,40}}\b{_RULES}\b",
        rf"\b(?:ignore|disregard|override|bypass)\b (?:the )?{_RULES} (?:above|before|given|you|of the system)",
        rf"\bdo not (?:follow|obey)\b.{{0,30}}\b{_RULES}\b",
        r"\bignorier\w*\b.{0,40}\banweisung",
        r"\bignor\w+\b.{0,40}\b(?:instruccion|instruction|istruzioni|instrucoes|consigne)",
        r"忽略.{0,12}(?:指令|提示|说明)",
        r"игнорируй.{0,30}(?:инструкц|указани)",
    ),
    "role": (
        r"<\|?(?:im_start|im_end|system|endoftext|start_header_id)\|?>",
        r"\[/?(?:inst|sys(?:tem)?)\]|<</?sys>>",
        r"(?:^|\n)[ \t]{0,9}(?:#{1,4}[ \t]{0,9})?(?:system|developer)[ \t]{0,9}(?:prompt|message|instructions?|override)?[ \t]{0,9}:",
        r"\b(?:new|updated|real|actual) (?:system )?(?:instructions?|prompt)\s*:",
        r"\b(?:you are|act as|behave as|pretend to be)\b.{0,40}"
        r"\b(?:dan|jailbroken|unrestricted|without (?:any )?(?:restrictions|filters|limits))\b",
        r"\b(?:enter|enable|activate)\b.{0,20}\b(?:developer|debug|god|admin|jailbreak) mode\b",
    ),
    "leak": (
        r"\b(?:reveal|print|repeat|show|output|leak|send|tell me)\b.{0,40}\b(?:system prompt|hidden prompt|your (?:instructions|prompt))",
        r"\b(?:send|post|forward|upload|exfiltrate|transmit|email)\b.{0,60}"
        r"\b(?:memor(?:y|ies)|conversations?|passwords?|credentials|api keys?|secrets|history)\b.{0,60}(?:https?://|\S@\S)",
        r"!\[[^\]\n]{0,80}\]\(https?://[^)\s]{0,200}[?&=]",
    ),
    "hide": (
        r"\b(?:do not|don't|never|without)\b.{0,20}"
        r"\b(?:tell|mention|inform|reveal|show|telling|mentioning|informing|alerting)\b.{0,30}\b(?:the )?users?\b",
    ),
}
_WEAK = {
    "order": (
        r"\bfrom now on\b|\bin (?:all|every) future\b",
        r"\b(?:when(?:ever)?|if) (?:the )?(?:users?|anyone|someone|you are) (?:asks?|asked|mentions?|wants?|says?)\b.{0,80}"
        r"\b(?:always|respond|reply|answer|say|recommend|tell|use|call)\b",
        r"\b(?:you|the assistant|the (?:ai|model|agent)) (?:must|should|shall|have to|are required to|is required to|will) "
        r"(?:always|never|now|only|not)\b",
        r"\b(?:important|attention|note)\s*[:!].{0,30}\b(?:assistant|ai|model|agent|llm)\b",
        r"\b(?:call|invoke|run|execute)\b.{0,20}\b(?:the )?(?:tool|function|command|shell)\b",
    ),
}
# Patterns look some way beyond each of these words. Where a long text is full of them, nobody says anything else with it.
_VERBS = (
    "ignore",
    "disregard",
    "forget",
    "override",
    "bypass",
    "skip",
    "do not",
    "you are",
    "act as",
    "behave",
    "send",
    "post",
    "reveal",
    "if ",
    "when",
)
_LONG, _SHARE = 4096, 40
# One of these words is in all that the patterns find: most text has none, and then nothing is compared.
_SIGNS = (
    *(
        "ignor",
        "disregard",
        "forget",
        "overrid",
        "bypass",
        "skip",
        "obey",
        "follow",
        "<",
        "[",
        ":",
        "you are",
        "act as",
        "behave as",
        "pretend",
    ),
    *(
        "mode",
        "prompt",
        "instructions",
        "http",
        "@",
        "user",
        "忽略",
        "игнор",
        "from now on",
        "future",
        "anyone",
        "someone",
        "assistant",
        "model",
    ),
    *("agent", "the ai", "you must", "you should", "you shall", "you have", "you will", "tool", "function", "command", "shell"),
)


def _compiled(patterns: dict[str, tuple[str, ...]]) -> list[tuple[str, re.Pattern[str]]]:
    return [(name, re.compile("|".join(some), re.DOTALL)) for name, some in patterns.items()]


_FIRST, _MORE = _compiled(_STRONG), _compiled(_WEAK)


def suspicion(text: str, *, of_user: bool) -> str | None:
    """Why a text is suspicious ("override", "role", "leak", "hide", "order"), or None. `of_user`: a user said it."""
    plain = text
    if not text.isascii():
        plain = unicodedata.normalize("NFKC", text).translate(_INVISIBLE)
    plain = plain.casefold()
    if not any(sign in plain for sign in _SIGNS):
        return None
    if len(plain) > _LONG and sum(map(plain.count, _VERBS)) * _SHARE > len(plain):
        return "override"
    for name, pattern in _FIRST if of_user else (*_FIRST, *_MORE):
        if pattern.search(plain):
            return name
    return None
