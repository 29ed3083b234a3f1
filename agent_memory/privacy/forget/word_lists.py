"""Words that say nothing about what is meant, and words of persons, of the languages whose sentences are taken apart (data)."""

from __future__ import annotations

_FUNCTION = """
im ive id said say says told tell mention mentioned know remember user users
ich du er sie es wir ihr mein meine meinen meinem meiner dein deine bin bist ist sind war dass das der die den dem des ein eine einen
einem einer und oder nicht auf in an am mit von zu zum zur habe hat uber gegen gesagt
yo mi mis soy es que el la los las un una de del en con al por para o me he dicho sobre
je j mon ma mes suis est qu le les une des du avec au aux et ou ne pas ai dit sur
io il lo gli mio mia sono e di che
"""
FUNCTION_WORDS = frozenset(_FUNCTION.split())
"""Beside the stop words of the index: articles, pronouns, prepositions, and verbs of saying."""
FUNCTION_SIGNS = frozenset("我你他她的是在了对對有和得地得们們吗嗎呢はがをにのでとも")

_FIRST = """
i im ive my mine me we our us user users ich mein meine meinen meinem meiner mich mir yo mi mis me je j mon ma mes io mio mia 我
"""
FIRST_PERSON = frozenset(_FIRST.split())
"""Who asks, in their own words or as facts call them."""
SECOND_PERSON = frozenset(
    ["you", "your", "youre", "yours", "du", "dein", "deine", "tu", "su", "sus", "votre", "vos", "ton", "ta", "tes", "你", "您"]
)
"""Who asks, in the words of an assistant."""
OWN_THINGS = frozenset(
    ["my", "our", "mein", "meine", "meinen", "mi", "mis", "mon", "ma", "mes", "mio", "mia", "where", "when", "what", "how"]
)
BEFORE_THINGS = frozenset(["new", "current", "old", "former", "exact", "full", "actual", "present", "previous", "own", "whole", "latest"])
"""What may stand before a thing without making another one of it."""
