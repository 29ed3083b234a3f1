"""Function words and words of persons, by language (data)."""

from __future__ import annotations

from agent_memory.foundation.text.terms import fold

_FOREIGN_OWNERS = """
mein meine meinen meinem meiner meines unser unsere unserem unseren unserer unseres mi mis nuestro nuestra mon ma mes notre nos
mio mia miei nostro nostra meu minha meus minhas nosso nossa mijn мой моя моё мои моего моей мою моём моих mój moja moje mojego mojej
"""
_FUNCTION = """
im ive id said say says told tell mention mentioned know remember user users
ich du er sie es wir ihr dein deine bin bist ist sind war dass das der die den dem des ein eine einen
einem einer und oder nicht auf in an am mit von zu zum zur habe hat uber gegen gesagt
yo soy es que está esta el la los las un una de del en con al por para o me he dicho sobre
je j suis est qu le les une des du l avec au aux et ou ne pas ai dit sur
io il lo gli sono e di che del della dei delle
"""
FUNCTION_WORDS = frozenset(fold(_FUNCTION + _FOREIGN_OWNERS).split())
"""Words without content, in addition to the index's stop words."""
FUNCTION_SIGNS = frozenset("我私僕俺你他她的是在了对對有和得地得们們吗嗎呢はがをにのでとも에를을는")

OWNERS = frozenset(fold(f"my our {_FOREIGN_OWNERS}").split())
"""Possessives of the user."""
_FOREIGN = f"{_FOREIGN_OWNERS} ich mich mir wir yo je j io ik я"
FOREIGN_FIRST_PERSON = frozenset(fold(_FOREIGN).split())
"""Words for the user, in languages without noun pairs as in "address book"."""
_FIRST = ["i", "im", "ive", "my", "mine", "me", "we", "our", "us", "user", "users", "我", "私", "僕", "俺"]
FIRST_PERSON = FOREIGN_FIRST_PERSON.union(_FIRST)
"""Words for the user, as users and facts say them."""
SECOND_PERSON = frozenset(
    ["you", "your", "youre", "yours", "du", "dein", "deine", "tu", "su", "sus", "votre", "vos", "ton", "ta", "tes", "你", "您"]
)
"""Words for the user, as an assistant says them."""
OWN_THINGS = OWNERS | frozenset(["where", "when", "what", "how"])
DETERMINERS = OWNERS | frozenset(["a", "an", "the", "this", "that", "his", "her", "their", "its", "some", "any"])
_BEFORE = """
new current old former exact full actual present previous own whole latest neue neuen neuer neues alte alten alter altes aktuelle aktuellen
nueva nuevo vieja viejo nouvelle nouveau nouvel ancienne ancien nuova nuovo
"""
BEFORE_THINGS = frozenset(_BEFORE.split())
"""Adjectives that do not make another thing."""
