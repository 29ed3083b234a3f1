"""Multilingual lists of function words, words for people, and negations."""

from __future__ import annotations

from agent_memory.foundation.text.stemming.foreign import frequent_words
from agent_memory.foundation.text.terms import STOP_WORDS, fold

_POSSESSIVES = """
my our mein meine meinen meinem meiner meines unser unsere unserem unseren unserer unseres mi mis nuestro nuestra mon ma mes notre nos
mio mia miei nostro nostra meu minha meus minhas nosso nossa mijn мой моя моё мои моего моей мою моём моих мій mój moja moje mojego mojej
"""
_OTHERS = "mine me we us user users mich mir wir 我 私 僕 俺"
_YOU = "you your youre yours du dein deine tu su sus votre vos ton ta tes 你 您"
_THEY = "he she they his her hers their theirs er ihr ihre seine ella ellos ellas il elle ils elles lui lei 他 她 彼"
_NOT = """
no not never without cannot don doesn didn
nicht kein keine keinen keinem keiner nie nunca ni jamas sin pas plus jamais sans non nao niet geen не ليس لا
"""
_SPEECH_WORDS = "id said say says told tell mention mentioned know remember bin bist es soy"

OWNERS = frozenset(fold(_POSSESSIVES).split())
"""First-person possessives, such as "my"."""
SPEAKERS = frozenset(["i", "im", "ive", "ich", "yo", "je", "j", "io", "ik", "я"])
FIRST_PERSON = OWNERS.union(SPEAKERS, _OTHERS.split())
"""Words for the user in messages and facts, such as "I" or "user"."""
SECOND_PERSON = frozenset(_YOU.split())
"""Words that an assistant uses for the user, such as "you"."""
THIRD_PERSON = frozenset(_THEY.split())
NEGATIONS = frozenset(_NOT.split())
NEGATION_SIGNS = frozenset("不没沒未无無别別안못")
FUNCTION_SIGNS = frozenset("我私僕俺你他她的是在了对對有和得地得們们吗嗎呢はがをにのでとも에를을는")
FUNCTION_WORDS = STOP_WORDS.union(FIRST_PERSON, SECOND_PERSON, _SPEECH_WORDS.split(), *map(frequent_words, ["german", "spanish", "french"]))
"""Words without content, such as "the", "I" and "remember"."""
