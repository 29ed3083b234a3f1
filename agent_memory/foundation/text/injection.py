"""Detect text that reads like an instruction to a model.

A list of patterns for the usual attacks in a few languages, not a judge: findings are reviewed, never dropped, and
missed ones are still shown as quoted data. Users may want standing orders ("from now on, always …") remembered, so
these weak rules skip users' text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agent_memory.foundation.text.cleaning.control_characters import plain_text
from agent_memory.foundation.text.stemming.unicode_forms import normalized

_INVISIBLE = dict.fromkeys(
    [0xAD, 0x180E, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF, *range(0x202A, 0x202F), *range(0x2066, 0x206A), *range(0xE0000, 0xE0080)]
)

# At least one word of each set occurs in every match of the pattern.
_Needs = tuple[tuple[str, ...], ...]

_RULES = r"(?:instructions?|prompts?|rules|guidelines|directions|commands|orders|programming|safety|constraints)"
_RULE_WORDS = ("instruction", "prompt", "rules", "guidelines", "directions", "commands", "orders", "programming", "safety", "constraints")
_SHUNNING = ("ignore", "disregard", "forget", "override", "bypass", "skip")

_STRONG: tuple[tuple[str, _Needs, tuple[str, ...]], ...] = (
    (
        "override",
        (_SHUNNING, _RULE_WORDS),
        (
            rf"\b(?:ignore|disregard|forget|override|bypass|skip)\b.{{0,20}}\b(?:all|any|every|previous|prior|above|earlier|preceding|your"
            rf"|system|other|these|those)\b.{{0,40}}\b{_RULES}\b",
            rf"\b(?:ignore|disregard|override|bypass)\b (?:the )?{_RULES} (?:above|before|given|you|of the system)",
        ),
    ),
    ("override", (("do not",), ("follow", "obey"), _RULE_WORDS), (rf"\bdo not (?:follow|obey)\b.{{0,30}}\b{_RULES}\b",)),
    ("override", (("anweisung",), ("ignorier",)), (r"\bignorier\w*\b.{0,40}\banweisung",)),
    (
        "override",
        (("instruccion", "instruction", "istruzioni", "instrucoes", "consigne"), ("ignor",)),
        (r"\bignor\w+\b.{0,40}\b(?:instruccion|instruction|istruzioni|instrucoes|consigne)",),
    ),
    ("override", (("忽略",),), (r"忽略.{0,12}(?:指令|提示|说明)",)),
    ("override", (("игнорируй",),), (r"игнорируй.{0,30}(?:инструкц|указани)",)),
    (
        "role",
        (("<",), ("im_start", "im_end", "system", "endoftext", "start_header_id")),
        (r"<\|?(?:im_start|im_end|system|endoftext|start_header_id)\|?>",),
    ),
    ("role", (("]", ">>"), ("inst]", "sys]", "system]", "sys>>")), (r"\[/?(?:inst|sys(?:tem)?)\]|<</?sys>>",)),
    (
        "role",
        ((":",), ("system", "developer")),
        (r"(?:^|\n)[ \t]{0,9}(?:#{1,4}[ \t]{0,9})?(?:system|developer)[ \t]{0,9}(?:prompt|message|instructions?|override)?[ \t]{0,9}:",),
    ),
    ("role", ((":",), ("instruction", "prompt")), (r"\b(?:new|updated|real|actual) (?:system )?(?:instructions?|prompt)\s*:",)),
    (
        "role",
        (("you are", "act as", "behave as", "pretend to be"), ("dan", "jailbroken", "unrestricted", "without")),
        (
            r"\b(?:you are|act as|behave as|pretend to be)\b.{0,40}"
            r"\b(?:dan|jailbroken|unrestricted|without (?:any )?(?:restrictions|filters|limits))\b",
        ),
    ),
    (
        "role",
        ((" mode",), ("enter", "enable", "activate")),
        (r"\b(?:enter|enable|activate)\b.{0,20}\b(?:developer|debug|god|admin|jailbreak) mode\b",),
    ),
    (
        "leak",
        (("prompt", "your instructions"), ("system prompt", "hidden prompt", "your instructions", "your prompt")),
        (
            r"\b(?:reveal|print|repeat|show|output|leak|send|tell me)\b.{0,40}"
            r"\b(?:system prompt|hidden prompt|your (?:instructions|prompt))",
        ),
    ),
    (
        "leak",
        (("http", "@"), ("send", "post", "forward", "upload", "exfiltrate", "transmit", "email")),
        (
            r"\b(?:send|post|forward|upload|exfiltrate|transmit|email)\b.{0,60}"
            r"\b(?:memor(?:y|ies)|conversations?|passwords?|credentials|api keys?|secrets|history)\b.{0,60}(?:https?://|\S@\S)",
        ),
    ),
    ("leak", (("![",),), (r"!\[[^\]\n]{0,80}\]\(https?://[^)\s]{0,200}[?&=]",)),
    (
        "hide",
        (("user",), ("do not", "don't", "never", "without")),
        (
            r"\b(?:do not|don't|never|without)\b.{0,20}"
            r"\b(?:tell|mention|inform|reveal|show|telling|mentioning|informing|alerting)\b.{0,30}\b(?:the )?users?\b",
        ),
    ),
)
_WEAK: tuple[tuple[str, _Needs, tuple[str, ...]], ...] = (
    (
        "order",
        (("now on", "future"), ("from now on", "in all future", "in every future")),
        (r"\bfrom now on\b|\bin (?:all|every) future\b",),
    ),
    (
        "order",
        (
            ("when", "if "),
            ("ask", "mention", "want", "say"),
            ("always", "respond", "reply", "answer", "say", "recommend", "tell", "use", "call"),
        ),
        (
            r"\b(?:when(?:ever)?|if) (?:the )?(?:users?|anyone|someone|you are) (?:asks?|asked|mentions?|wants?|says?)\b.{0,80}"
            r"\b(?:always|respond|reply|answer|say|recommend|tell|use|call)\b",
        ),
    ),
    (
        "order",
        (("you ", "assistant", "the ai", "the model", "the agent"), ("must ", "should ", "shall ", "have to", "required to", "will ")),
        (
            r"\b(?:you|the assistant|the (?:ai|model|agent)) (?:must|should|shall|have to|are required to|is required to|will) "
            r"(?:always|never|now|only|not)\b",
        ),
    ),
    (
        "order",
        (("important", "attention", "note"), ("assistant", "ai", "model", "agent", "llm")),
        (r"\b(?:important|attention|note)\s*[:!].{0,30}\b(?:assistant|ai|model|agent|llm)\b",),
    ),
    (
        "order",
        (("call", "invoke", "run", "execute"), ("tool", "function", "command", "shell")),
        (r"\b(?:call|invoke|run|execute)\b.{0,20}\b(?:the )?(?:tool|function|command|shell)\b",),
    ),
)
# Patterns look ahead from these words. A long text full of them is an attack.
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


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern of suspicious text. Weak rules skip users' statements."""

    name: str
    needs: _Needs
    pattern: re.Pattern[str]
    weak: bool


def _compiled(patterns: tuple[tuple[str, _Needs, tuple[str, ...]], ...], *, weak: bool) -> list[Rule]:
    return [Rule(name, needs, re.compile("|".join(some), re.DOTALL), weak) for name, needs, some in patterns]


_ALL = [*_compiled(_STRONG, weak=False), *_compiled(_WEAK, weak=True)]


def _has_one_of_each(plain: str, needs: _Needs) -> bool:
    # Words are much cheaper to find than patterns. Plain loops: the hot path.
    for words in needs:
        for word in words:
            if word in plain:
                break
        else:
            return False
    return True


def _plain(text: str) -> str:
    text = plain_text(text)  # as a prompt shows it
    if text.isascii():
        return text.lower()
    return normalized("NFKC", text).translate(_INVISIBLE).casefold()


def rules_for(texts: Iterable[str], *, of_user: bool) -> list[Rule]:
    """Return the rules that one of the texts may break. `of_user`: users said all of them."""
    plain = _plain("\n".join(texts))
    return [rule for rule in _ALL if not (of_user and rule.weak) and _has_one_of_each(plain, rule.needs)]


def suspicion(text: str, *, of_user: bool, rules: Sequence[Rule] = _ALL) -> str | None:
    """Return why a text is suspicious ("override", "role", "leak", "hide", "order"), or None.

    `of_user`: a user said it. `rules`: the result of `rules_for`.
    """
    if not rules:
        return None
    plain = _plain(text)
    wanted = [rule for rule in rules if not (of_user and rule.weak) and _has_one_of_each(plain, rule.needs)]
    if wanted and len(plain) > _LONG and sum(map(plain.count, _VERBS)) * _SHARE > len(plain):
        return "override"
    for rule in wanted:
        if rule.pattern.search(plain):
            return rule.name
    return None
