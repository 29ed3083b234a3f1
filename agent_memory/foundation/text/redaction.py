"""Redact secrets: keys, tokens, passwords and card numbers become "[redacted: …]"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from re import Match

from agent_memory.foundation.core.tables import read_table

# No pattern nests unbounded repetitions, so every pattern takes linear time.
_KEY_LABEL = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
# Documented token formats, each with text that it always contains.
_TOKENS = [line.split(" ") for line in read_table("text/data/redaction/tokens.toml")["tokens"].split("\n") if line]
_NAMES = (
    r"pass(?:word|wd|phrase|code)|pwd|passwort|kennwort|mot de passe|contraseña|senha|wachtwoord"
    r"|(?:api|access|secret|private|account|auth|encryption|signing)[ _-]?(?:key|token|secret)|client[ _-]?secret|credentials?"
)
_KEY_BEGIN = re.compile(rf"-----BEGIN {_KEY_LABEL}")
_KEY_END = re.compile(rf"-----END {_KEY_LABEL}")
# The body of a truncated key. A line break may be escaped, as a backslash and an "n".
_KEY_BODY = re.compile(r"[A-Za-z0-9+/=\\\s]*")
_TOKEN = re.compile(rf"(?<![A-Za-z0-9_-])(?:{'|'.join(token for _, token in _TOKENS)})")
_BEARER = re.compile(r"\b(bearer|basic)\s+(?!\[redacted)([A-Za-z0-9._~+/-]{16,4000}=*)", re.IGNORECASE)
_WEBHOOK = re.compile(r"(hooks\.slack\.com/services/|discord(?:app)?\.com/api/webhooks/)[A-Za-z0-9/_-]{10,300}")
_URL_PASSWORD = re.compile(r"\b([a-z][a-z0-9+.-]{1,20}://[^\s/:@]{0,100}:)(?!\[redacted)([^\s/@]{1,200})(?=@)", re.IGNORECASE)
_NAMED = re.compile(
    rf"(?<![A-Za-z])((?:{_NAMES})[\"'`]?(?P<link>\s{{0,3}}(?:=|:=?|=>|->)\s{{0,3}}|\s{{1,3}}(?:is|was|ist|est|es|é|are|:)\s{{1,3}}))"
    r"(?P<quote>[\"'`]?)(?P<value>(?!\[redacted)[^\s\"'`,;<>]{4,200})",
    re.IGNORECASE,
)
# The leading `\d` makes the search fast: it tries a match only at digits.
_CARD = re.compile(r"\d(?<![\d.+-]\d)(?:[ -]?\d){12,18}(?![\d-])")
# Quick checks before the slow patterns. A token has at least this length and no spaces; the shortest is `xoxb-` with
# ten characters. A secret's name contains one of `_NAME_SIGNS`. These have no "i", because "ı" matches "i" if case is
# ignored. A card number has at least 13 digits.
_SHORTEST_TOKEN = 15
_TOKEN_SIGNS = tuple(sign for sign, _ in _TOKENS)
# Texts before a token or in its address, in lower case. "bas" is "basic" without its "i".
_AROUND_SIGNS = ("bearer", "bas", "hooks.slack.com/", "/webhooks/")
_NAME_SIGNS = ("pass", "key", "token", "secret", "pwd", "credent", "kennwort", "contrase", "senha", "wachtwoord")
_CARD_DIGITS = b"0" * 13
_ANY_DIGIT, _BETWEEN_DIGITS = bytes.maketrans(b"123456789", b"000000000"), b" -"


def redact_all(texts: Sequence[str]) -> Sequence[str]:
    """Redact each text. Return the same sequence if nothing was redacted."""
    text = "\n".join(texts)
    folded = text.casefold()
    if "PRIVATE KEY" in text or "://" in text or _may_name_secrets(folded) or _may_hold_tokens(text, folded):
        done = [redact(one) for one in texts]
    elif _without_cards(text) != text:
        # No match crosses a line.
        done = [_without_cards(one) for one in texts]
    else:
        return texts
    return texts if done == texts else done


def redact(text: str) -> str:
    """Replace each secret in a text with its kind. Idempotent."""
    if "PRIVATE KEY" in text:
        text = _without_private_keys(text)
    if _may_hold_tokens(text, text.casefold()):
        text = _TOKEN.sub("[redacted: token]", text)
        text = _BEARER.sub(lambda m: f"{m[1]} [redacted: token]" if any(c.isdigit() for c in m[2]) else m[0], text)
        text = _WEBHOOK.sub(r"\1[redacted: webhook]", text)
    if "://" in text:
        text = _URL_PASSWORD.sub(r"\1[redacted: password]", text)
    if _may_name_secrets(text.casefold()):
        text = _NAMED.sub(_without_value, text)
    return _without_cards(text)


def _may_hold_tokens(text: str, folded: str) -> bool:
    long = " ".join([word for word in text.split() if len(word) >= _SHORTEST_TOKEN])
    return bool(long) and (any(sign in long for sign in _TOKEN_SIGNS) or any(sign in folded for sign in _AROUND_SIGNS))


def _may_name_secrets(folded: str) -> bool:
    return any(sign in folded for sign in _NAME_SIGNS)


def _without_value(m: Match[str]) -> str:
    value = m["value"].rstrip(".!?)")
    if not _secret_looking(value, assigned="=" in m["link"], quoted=bool(m["quote"])):
        return m[0]
    kind = "password" if re.match(r"pass|pwd|kenn|mot|contra|senha|wacht", m[1], re.IGNORECASE) else "key"
    return f"{m[1]}{m['quote']}[redacted: {kind}]{m['value'][len(value) :]}"


def _without_cards(text: str) -> str:
    if text.isascii() and _CARD_DIGITS not in text.encode().translate(_ANY_DIGIT, _BETWEEN_DIGITS):
        return text
    return _CARD.sub(lambda m: "[redacted: card number]" if _is_card(re.sub(r"\D", "", m[0])) else m[0], text)


def _without_private_keys(text: str) -> str:
    parts: list[str] = []
    at = 0
    # After the last end mark, do not search for another one.
    last = max((end_match.end() for end_match in _KEY_END.finditer(text)), default=0)
    while begin := _KEY_BEGIN.search(text, at):
        parts += [text[at : begin.start()], "[redacted: private key]"]
        end = _KEY_END.search(text, begin.end()) if begin.end() < last else _KEY_BODY.match(text, begin.end())
        at = begin.end() if end is None else end.end()
    return "".join([*parts, text[at:]])


def _secret_looking(value: str, *, assigned: bool, quoted: bool) -> bool:
    """True if a value may be a secret.

    A plain word is not a secret unless it follows "=".
    """
    if assigned:
        return True
    if value.isdigit():
        return len(value) >= 4
    odd = any(not c.isalpha() for c in value.strip("-_/.")) or (value[1:] != value[1:].lower() and value != value.upper())
    return len(value) >= (4 if quoted else 6) and odd


def _is_card(digits: str) -> bool:
    """True if the digits may be a card number (Luhn, ISO/IEC 7812-1)."""
    if len(set(digits)) < 2 or not (digits[0] in "3456" or "2221" <= digits[:4] <= "2720"):
        return False
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + place % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0
