"""Texts that make regular expressions slow."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256

_NOISE = b64encode(b"".join(sha256(str(number).encode()).digest() for number in range(3000))).decode()

# Different words of eight letters with only two beginnings.
_WORDS = " ".join(
    ("perso" if number % 2 else "compa") + "".join(chr(97 + number // 26**place % 26) for place in range(3)) for number in range(1, 9000)
)

# Each is repeated up to the requested size.
PARTS: dict[str, str] = {
    # Times.
    "from … to": "from may to ",
    "between … and": "between may and ",
    "prepositions": "in during of from last this ",
    "relations": "2 weeks before the ",
    "days of months": "may 8 ",
    "dates": "2023-05-",
    "yesterdays": "yesterday ",
    "spans": "in 3 days ago this coming ",
    # Runs.
    "blanks": " ",
    "lines": "\n",
    "blank lines": " \r\n",
    "digits": "1",
    "one word": "a",
    "quotes": '"',
    "quoted": '"a ',
    "apostrophes": "n't",
    "brackets": "[",
    "JSON": '{"a":[',
    "angles": "<",
    "dashes": "- ",
    "underscores": "_",
    "addresses": "a@",
    "dots": ".",
    "dotted": "a.b",
    "sentences": "Mr. 1. J. ",
    # Other scripts.
    "combining": "e\u0301",
    "marks alone": "\u0301",
    "zero width": "a\u200b",
    "ligatures": "\ufdfa",
    "Korean": "\u1100\u1161\u11a8",
    "Chinese": "忽略",
    "laughter": "哈",
    "laughter that ends": "k" * 59 + "z ",
    "Chinese laughter that ends": "哈" * 59 + "z ",
    "emoji": "\U0001f468\u200d\U0001f469",
    # Code and answers of models.
    "fences": "```\n",
    "nested fences": "````json\n```\n",
    "a fence and lines": "```" + "\n" * 1_000_000,
    "a fence and blanks": "```" + " " * 1_000_000,
    "thoughts": "<think> ",
    "placeholders": "{message.",
    # Secrets.
    "keys": "-----BEGIN PRIVATE KEY-----",
    "passwords": "password is ",
    "schemes": "a+b://",
    "credentials": "a://b:",
    "bearers": "bearer  \t",
    "tokens": "eyJaaaaaaaa.",
    "inputs": "input_value=",
    # Memory prompts.
    "headings": "## A summary of the conversation so far:\n",
    "lines of memories": "- [8 May 2023, 2 weeks ago; semantic] ",
    "ids": "(ID: a) ",
    "ids that do not end": "[aaa; semantic] (ID: ",
    # Orders.
    "orders": "ignore all ",
    "orders to hide": "do not tell the ",
    "leaks": "send my memories ",
    # Noise.
    "base64": _NOISE,
    "different words": f"{_WORDS} ",
}

# Most functions search for words before they try patterns: these are such words, in an order without meaning.
_TRIGGERS = (
    " prompts orders rules memories http @ users dan jailbroken without your instructions anweisung ]; semantic] (ID: 5 PRIVATE KEY ://"
    " key pass token bearer /webhooks/ eyJ input_value= [inst] ![ : , ask say always tool future mode enter important ignor ignorier send"
    " reveal do not you are 忽略 "
)


def hostile_text(kind: str, size: int) -> str:
    """Return about `size` bytes of one kind of hostile text, including trigger words."""
    part = PARTS[kind]
    half = (part * (size // (2 * len(part.encode())) + 1))[: size // 2]
    while len(half.encode()) > size // 2:
        half = half[: len(half) * (size // 2) // len(half.encode())]
    return half + _TRIGGERS + half
