"""Generate texts from a seed. They resemble messages to an assistant, and all are different."""

from __future__ import annotations

import random
from typing import Any

_PEOPLE = [
    "Aiko",
    "Bela",
    "Chidi",
    "Dana",
    "Emre",
    "Fatou",
    "Goran",
    "Hana",
    "Ilya",
    "Jorge",
    "Keiko",
    "Lars",
    "Mira",
    "Noor",
    "Oskar",
    "Pilar",
    "Quinn",
    "Rana",
    "Sven",
    "Tala",
    "Umut",
    "Vera",
    "Wen",
    "Yael",
]
_TOWNS = [
    "Aarhus",
    "Bilbao",
    "Cusco",
    "Delft",
    "Evora",
    "Fargo",
    "Galway",
    "Hobart",
    "Izmir",
    "Jaipur",
    "Kobe",
    "Leipzig",
    "Malmo",
    "Nantes",
    "Oulu",
    "Perth",
    "Quebec",
    "Rennes",
    "Split",
    "Turku",
]
_THINGS = [
    "bike",
    "violin",
    "kiln",
    "canoe",
    "loom",
    "lathe",
    "camera",
    "tent",
    "kayak",
    "anvil",
    "harp",
    "easel",
    "drone",
    "piano",
    "sewing-machine",
    "telescope",
    "microscope",
    "trumpet",
]
_CRAFTS = [
    "pottery",
    "rowing",
    "weaving",
    "chess",
    "baking",
    "climbing",
    "archery",
    "fencing",
    "origami",
    "sailing",
    "gardening",
    "carving",
    "beekeeping",
    "calligraphy",
]
_DISHES = [
    "ramen",
    "paella",
    "pierogi",
    "dal",
    "goulash",
    "ceviche",
    "risotto",
    "laksa",
    "borscht",
    "tagine",
    "moussaka",
    "gnocchi",
    "couscous",
    "pho",
]
_DEEDS = [
    "bought",
    "sold",
    "repaired",
    "lost",
    "painted",
    "borrowed",
    "sketched",
    "tested",
    "measured",
    "cleaned",
    "carried",
    "mended",
    "traded",
    "ordered",
]
_MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"]
_KINDS = [
    "old",
    "blue",
    "heavy",
    "rare",
    "folding",
    "wooden",
    "borrowed",
    "second-hand",
    "tiny",
    "noisy",
    "bright",
    "broken",
    "brand-new",
    "rusty",
]


def user(number: int) -> str:
    return f"user-{number:06d}"


def fact(owner: int, number: int) -> str:
    """Return one of a user's memories, a sentence of about 25 words."""
    pick = random.Random(f"fact {owner} {number}").choice
    return (
        f"{pick(_PEOPLE)} and the user {pick(_DEEDS)} a {pick(_KINDS)} {pick(_THINGS)} in {pick(_TOWNS)} in {pick(_MONTHS)}, "
        f"talked about {pick(_CRAFTS)}, and had {pick(_DISHES)} with {pick(_PEOPLE)} (note {owner}-{number})."
    )


def question(owner: int, number: int, salt: str = "") -> str:
    """Return a question that `fact(owner, number)` answers."""
    words = fact(owner, number).replace(",", "").replace(".", "").split()
    return f"What did {words[0]} do with the {words[6]} {words[7]} in {words[9]}?{f' ({salt})' if salt else ''}"


def message(session: str, number: int) -> dict[str, Any]:
    """Return a message of about 25 words from the user or 60 words from the assistant."""
    pick = random.Random(f"message {session} {number}").choice
    if number % 2 == 0:
        content = (
            f"I keep thinking of the {pick(_KINDS)} {pick(_THINGS)} that {pick(_PEOPLE)} {pick(_DEEDS)} in {pick(_TOWNS)}. Could you help "
            f"me to plan a day of {pick(_CRAFTS)} in {pick(_MONTHS)}, with {pick(_DISHES)} for everybody?"
        )
    else:
        content = (
            f"Of course. For the {pick(_THINGS)} I would ask {pick(_PEOPLE)} first what was agreed in {pick(_TOWNS)}, and then settle a "
            f"day and what it may cost. Most people who like {pick(_CRAFTS)} want a slow afternoon, so leave two hours free "
            f"after the meal. {pick(_DISHES)} is easy to make for many. Shall I write to {pick(_PEOPLE)} and propose a weekend in "
            f"{pick(_MONTHS)}, with a second date in case it rains?"
        )
    day, minute = 1 + number // 1440 % 28, number % 1440
    return {
        "id": f"{session}-{number:05d}",
        "role": "assistant" if number % 2 else "user",
        "content": content,
        "created_at": f"2026-05-{day:02d}T{minute // 60:02d}:{minute % 60:02d}:00Z",
    }
