"""Words of time beside the English ones, and which way a text looks: German, Spanish, French and Chinese (pure)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from re import Match
from typing import Literal

Direction = Literal["past", "future", "either"]
Days = tuple[date, date]
Place = tuple[Days, int, int]
"""Days, and where the words that name them begin and end."""

_MOST_DAYS = 36_500
MOST_CHARS = 32_768
"""What of a text is read for times: some fifty patterns look through it."""


@dataclass(frozen=True, slots=True)
class _Words:
    """How a language names times: patterns with the groups `last`, `next` or `this`, `d` (weekday), `u` (unit), `n` (count), `m`, `day`."""

    near: dict[str, int]
    weekdays: Sequence[str]
    months: Sequence[str]
    units: dict[str, str]
    numbers: dict[str, int]
    weekday: str
    unit: str
    ahead: str
    ago: str
    month: str
    day: str


_DE = _Words(
    {"vorgestern": -2, "gestern": -1, "heute": 0, "übermorgen": 2, "morgen": 1},
    ("montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag|sonnabend", "sonntag"),
    ("januar", "februar", "märz", "april", "mai", "juni", "juli", "august", "september", "oktober", "november", "dezember"),
    {"tag": "day", "woche": "week", "monat": "month", "jahr": "year"},
    {"einem": 1, "einer": 1, "zwei": 2, "drei": 3, "vier": 4, "fünf": 5, "sechs": 6, "sieben": 7, "acht": 8, "zehn": 10},
    r"(?:(?P<last>letzten|vergangenen|vorigen)|(?P<next>nächsten|kommenden|diesen)|am|seit|bis|auf|für) (?P<d>D)",
    r"(?:(?P<last>letzte[nsrm]?|vergangene[nsrm]?|vorige[nsrm]?)|(?P<next>nächste[nsrm]?|kommende[nsrm]?)|(?P<this>diese[nsrm]?)) (?P<u>U)",
    r"in (?P<n>N) (?P<u>U)(?:en|n|e)?",
    r"vor (?P<n>N) (?P<u>U)(?:en|n|e)?",
    r"(?:im|seit|bis) (?P<m>M)",
    r"(?<!I )am (?P<day>\d{1,2})\.(?! ?\d)",
)
_ES = _Words(
    {"anteayer": -2, "ayer": -1, "hoy": 0, "pasado mañana": 2, "mañana": 1},
    ("lunes", "martes", "miércoles", "jueves", "viernes", "sábado", "domingo"),
    ("enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre|setiembre", "octubre", "noviembre", "diciembre"),
    {"día": "day", "semana": "week", "mes": "month", "año": "year"},
    {"un": 1, "una": 1, "dos": 2, "tres": 3, "cuatro": 4, "cinco": 5, "seis": 6, "siete": 7, "ocho": 8, "diez": 10},
    r"(?:el|este|los) (?P<next>próximo )?(?P<d>D)(?: (?P<last>pasado)| (?:próximo|que viene))?",
    r"(?:(?:la|el) (?P<next>próxim[oa] )?|(?P<this>est[ea] ))(?P<u>U)(?: (?:(?P<last>pasad[oa])|(?P<next2>que viene|próxim[oa])))?",
    r"(?:en|dentro de) (?P<n>N) (?P<u>U)(?:es|s)?",
    r"hace (?P<n>N) (?P<u>U)(?:es|s)?",
    r"en (?P<m>M)",
    r"el (?:día )?(?P<day>\d{1,2})(?! ?[\d:de])",
)
_FR = _Words(
    {"avant-hier": -2, "hier": -1, "aujourd'hui": 0, "aujourd’hui": 0, "après-demain": 2, "demain": 1},
    ("lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche"),
    ("janvier", "février", "mars", "avril", "mai", "juin", "juillet", "août", "septembre", "octobre", "novembre", "décembre"),
    {"jour": "day", "semaine": "week", "mois": "month", "an|année": "year"},
    {"un": 1, "une": 1, "deux": 2, "trois": 3, "quatre": 4, "cinq": 5, "six": 6, "sept": 7, "huit": 8, "dix": 10},
    r"(?:(?:ce|le) )?(?P<d>D)(?: (?:(?P<last>dernier|passé)|(?P<next>prochain)))?",
    r"(?:(?P<this>cett?e?)|la|le|l['’]) ?(?P<u>U)(?: (?:(?P<last>derni(?:er|ère)|passée?)|(?P<next>prochaine?)))?",
    r"dans (?P<n>N) (?P<u>U)s?",
    r"il y a (?P<n>N) (?P<u>U)s?",
    r"en (?P<m>M)",
    r"le (?P<day>\d{1,2})(?! ?[\dh:%])",
)
_ZH = _Words(
    {"大前天": -3, "前天": -2, "昨天": -1, "昨晚": -1, "今天": 0, "今晚": 0, "大后天": 3, "后天": 2, "明天": 1, "明晚": 1},
    ("一", "二", "三", "四", "五", "六", "日|天"),
    tuple(f"{name}月|{number}月" for number, name in enumerate([*"一二三四五六七八九十", "十一", "十二"], start=1)),
    {"天": "day", "周|个?星期|个?礼拜": "week", "个?月": "month", "年": "year"},
    {"一": 1, "两": 2, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "十": 10},
    r"(?:(?P<last>上)|(?P<next>下)|(?:这|本))?个?(?:周|星期|礼拜)(?P<d>D)",
    r"(?:(?P<last>上|去)|(?P<next>下|明)|(?P<this>这|本|今))(?P<u>U)",
    r"(?P<n>N)(?P<u>U)(?:以?后|之后)",
    r"(?P<n>N)(?P<u>U)(?:以?前|之前)",
    r"(?P<m>M)(?![0-9一二三四五六七八九十])",
    r"(?P<day>[0-9]{1,2})(?:号|日)",
)
_ALL = (_DE, _ES, _FR, _ZH)

_CUES: dict[Direction, re.Pattern[str]] = {
    "future": re.compile(
        r"\b(?:will|shall|going to|gonna|coming|upcoming|next|tomorrow|soon|plan(?:s|ned|ning)?|scheduled|due|should i|do i have|have i got"
        r"|(?:am|are|is) (?:i|we|you|he|she|they|my \w{2,20}) \w{2,20}ing|off to"
        r"|(?:am|are|is|['’](?:m|re|s)) (?:having|meeting|seeing|visiting|flying|leaving|arriving|moving|starting|hosting|getting married)"
        r"|wird|werde|werden|wirst|kommt|kommende[nrsm]?|nächste[nrsm]?|morgen|bald|steht|muss ich|soll ich|habe ich vor"
        r"|viene|vienen|va a|van a|voy a|vas a|vamos a|próxim[oa]s?|mañana|tengo que|debo|\w{1,20}[aei]r(?:é|ás?|emos|án)"
        r"|viendra|va venir|vais|vient|arrive|prochaine?s?|demain|dois|faut)\b|'ll\b|下周|下个|明天|后天|明年|将|要|会来|打算|准备",
        re.IGNORECASE,
    ),
    "past": re.compile(
        r"\b(?:did|(?<=\s)was|were|had|went|said|told|met|visited|happened|saw|bought|came|made|got|took|gave|called|ate|been|last|ago|yesterday|\w{3,20}ed"
        r"|war|waren|hatte|hatten|ging|kam|sagte|gesagt|gewesen|gemacht|getroffen|passiert|gekauft|gestern|letzte[nrsm]?"
        r"|(?:habe?|hast|hat|haben|bin|bist|ist|sind|wurde) (?:\w{1,20} ){0,6}"
        r"(?:ge\w{2,20}|(?:be|ver|er|ent|zer)\w{2,20}[tn]|\w{2,6}ge\w{2,20}[tn])"
        r"|fue|fui|era|hice|hizo|dijo|dije|vino|pasó|pasad[oa]|ayer|tuv[eo]|estuv[eo]|trajo"
        r"|(?!(?:jos|beb|caf|est|porqu)é)\w{2,20}[^\Wr]é|(?:compr|entr|mir|esper|recib|viv|sal|com|conoc|escrib|nac)[éí]|\w{2,20}ó"
        r"|\w{2,20}(?:ar|ier)on|(?:hic|fu|tuv|estuv|vin)imos"
        r"|(?:a|as|ont|avez|avons|es|est|suis|sont) \w{2,20}ée?s?|\w{2,20}(?:ais|ait|aient)"
        r"|était|étais|ai|fait|dit|venu|venue|allé|allée|vu|acheté|rencontré|dernière?|hier|passé)\b|昨天|前天|上周|上个|去年|了|过",
        re.IGNORECASE,
    ),
}

# A sentence of fewer words beside a time has no verb.
_LEAST_WORDS = 2
# The present tense of a question, told by its main verb: "Who visits me …", "When does she fly …". It decides where no other cue speaks.
_PRESENT = re.compile(
    r"^\W*(?:(?:who|what) (?!is\b|was\b|has\b|does\b|this\b|its\b)[a-z]{2,20}s\b|(?:when|where|what time) do(?:es)? (?!you\b|i\b)"
    # German: no form of "have" and "be", and no preterite ("machte").
    r"|(?:mit wem|zu wem|bei wem|wer|was|wen|wem|wo|wohin|wann|um wie viel uhr) "
    r"(?!weißt|weiß|ist|bist|hast|hat)\w{2,20}(?:(?<!t)e|(?<!s)t|st)\b"
    # Spanish: a verb in the first person ("ceno"), or one of coming and going.
    r"|(?:(?:con|a|de|en) )?(?:quién|qué|dónde|adónde|cuándo|qué hora) (?:me |se |nos )?"
    r"(?:(?!hizo|dijo|vino|tuvo|puso|pudo|quiso|supo|como\b)\w{2,20}o|llega|sale|visita|empieza|vuelve|va|vas|vamos|viajamos|como)\b"
    # French: whose verb has no auxiliary, which would be a cue of its own.
    r"|(?:avec |chez |de |à )?(?:qui|où|quand|à quelle heure) (?:est-ce que |est-ce qu['’])?"
    r"(?:(?:je|tu|il|elle|on|nous|vous|me) |m['’])(?!ai\b|a\b|as\b)"
    r")",
    re.IGNORECASE,
)


# The same of a statement: of what happens at a time, and is no state, the present tense tells ahead ("Anna visits me on Friday").
_HAPPENS = re.compile(
    r"\b(?:visits|comes|arrives|lands|leaves|starts|begins|opens|closes|flies|moves|meets|returns|departs|travels|marries"
    r"|(?:i|we|they|you) (?:visit|come|arrive|land|leave|start|begin|fly|move|meet|return|depart|travel|marry))\b",
    re.IGNORECASE,
)

# What is put on a day, or moved to it, has that day ahead, though it is told in the past tense: "The opera was postponed until Sunday".
# Others tell of something that may lie ahead or behind: "I was invited to a wedding in August".
_ARRANGED = (
    r"(?:re|pre)?(?:booked|scheduled|reserved|registered|planned|invited|enrol?led|signed up"
    r"|(?:agreed|decided|promised|arranged|intended|offered) to|bought (?:\w+ ){0,2}tickets?"
    r"|got (?:\w+ ){0,2}(?:tickets?|appointment|reservation|slot)|made (?:an? |\w+ )?(?:appointment|reservation|plans)"
    r"|gave (?:\w+ ){0,2}(?:appointment|slot)|réservé\w*|inscrite?s?|invitée?s?|gebucht|reserviert|eingeladen|reservad[oa]s?"
    r"|invitad[oa]s?)"
)
_ARRANGED_FOR = re.compile(
    rf"(?:\b(?:{_ARRANGED}|moved|pushed|postponed|delayed|shifted|changed|switched|extended|put off|brought forward|set|agreed|decided"
    r"|arranged|confirmed|rearranged|promised|verschoben|verlegt|reporté\w*|déplacé\w*|repoussé\w*|aplazad[oa]s?|pospuest[oa]s?)\b"
    r"(?:\W+\w+){0,8}?\W+(?:to|until|till|for|pour|à|au|para|al|hasta|auf|für)(?: the| le| el| den)?|改到|推迟到|延期到|延到|改期到)\s*$",
    re.IGNORECASE,
)
# "Auf Freitag verschoben", "für Freitag reserviert": the verb comes behind.
_PUT_ON = re.compile(r"(?:auf|für) ", re.IGNORECASE)
_BEGINS_FOR = re.compile(r"(?:until|till|for|to|by)\b", re.IGNORECASE)
_ARRANGEMENT = re.compile(
    rf"\b(?:(?:was|were|been|have|has|had|ai|habe|wurde) )?{_ARRANGED}\b|[预預][约約订訂]了?|[订訂约約]了", re.IGNORECASE
)

_SENTENCE_END = re.compile(r"[.!?…](?=\s)|[;\n。！？；]")
_CLAUSE_END = re.compile(
    r"[,:，：、–—]|\b(?:and|but|so|because|while|und|aber|denn|weil|y|pero|porque|et|mais|car|e|mas|ma|en|maar|want)\b", re.IGNORECASE
)
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]|[^\W\d_]+")


def direction_of(text: str) -> Direction:
    """Which way a text looks, by its tense, verbs and words of time; "either" when nothing decides or both speak."""
    text = _ARRANGEMENT.sub(" ", text[:MOST_CHARS])
    ahead, back = (_CUES[way].search(text) is not None for way in ("future", "past"))
    if not ahead and not back and (_PRESENT.match(text) or _HAPPENS.search(text)):
        return "future"
    return "either" if ahead == back else "future" if ahead else "past"


def direction_at(text: str, start: int, end: int) -> Direction:
    """Which way a text looks where it names a time: as the clause around that says, else its sentence, else, when that is little more than
    the time, the text. "I was ill. Anna visits me on Friday." looks ahead."""
    begin, stop = _around(_SENTENCE_END, text, start, end, 0, len(text))
    sentence = text[begin:stop]
    clause = slice(*_around(_CLAUSE_END, text, start, end, begin, stop))
    preposition = _BEGINS_FOR.match(text, start)
    arranged = _ARRANGED_FOR.search(text, clause.start, start if preposition is None else preposition.end()) is not None
    if arranged or _PUT_ON.match(text, start) is not None:
        return "future"
    way = direction_of(text[clause])
    if way == "either" and sentence != text[clause]:
        way = direction_of(sentence)
    beside = _WORD.findall(text[begin:start] + " " + text[end:stop])
    return direction_of(text) if way == "either" and len(beside) < _LEAST_WORDS else way


def _around(boundary: re.Pattern[str], text: str, start: int, end: int, begin: int, stop: int) -> tuple[int, int]:
    """From the last boundary before a place in a part of a text to the first behind it."""
    for match in boundary.finditer(text, begin, start):
        begin = match.end()
    behind = boundary.search(text, end, stop)
    return begin, stop if behind is None else behind.start()


Reader = Callable[[Match[str], date, Direction], Days | None]


def _either(words: Sequence[str]) -> str:
    return "|".join(sorted((part for word in words for part in word.split("|")), key=len, reverse=True))


def _index(words: Sequence[str], said: str) -> int:
    return next(index for index, word in enumerate(words) if re.fullmatch(word, said, re.IGNORECASE))


class _Times:
    """What reads the times of a language."""

    def __init__(self, words: _Words) -> None:
        self._words = words
        self._blankless = words is _ZH
        self._forms = {
            "d": _either(words.weekdays),
            "m": _either(words.months),
            "u": "|".join(words.units),
            "n": r"\d{1,3}|" + _either(list(words.numbers)),
        }

    def readers(self) -> list[tuple[re.Pattern[str], Reader]]:
        """The language's patterns, each with what makes days of its matches."""
        words = self._words
        sources: list[tuple[str, Reader]] = [
            (_either(list(words.near)), self._near),
            (words.weekday, self._weekday),
            (words.unit, self._calendar),
            (words.ahead, self._ahead),
            (words.ago, self._ago),
            (words.month, self._month),
            (words.day, self._day_of_month),
        ]
        return [(self._compiled(source), read) for source, read in sources]

    def _compiled(self, source: str) -> re.Pattern[str]:
        for name, form in self._forms.items():
            source = source.replace(f"(?P<{name}>{name.upper()})", f"(?P<{name}>{form})")
        bound, end = ("", "") if self._blankless else (r"(?<!\w)", r"(?!\w)")
        return re.compile(f"{bound}(?:{source}){end}", re.IGNORECASE)

    def _count(self, m: Match[str]) -> int:
        said = m["n"].lower()
        return int(said) if said.isdigit() else self._words.numbers[said]

    def _unit(self, m: Match[str]) -> str:
        return next(name for form, name in self._words.units.items() if re.fullmatch(form, m["u"], re.IGNORECASE))

    def _near(self, m: Match[str], today: date, _: Direction) -> Days:
        return _day(today + timedelta(days=self._words.near[m[0].lower()]))

    def _weekday(self, m: Match[str], today: date, way: Direction) -> Days:
        index, marks = _index(self._words.weekdays, m["d"]), m.groupdict()
        if not self._blankless:
            return _weekday(today, index, "past" if marks["last"] else "future" if marks["next"] else way)
        if not marks["last"] and not marks["next"]:
            return _weekday(today, index, way)
        monday = today - timedelta(days=today.weekday()) + timedelta(days=7 if marks["next"] else -7)
        return _day(monday + timedelta(days=index))

    def _calendar(self, m: Match[str], today: date, _: Direction) -> Days | None:
        marks = m.groupdict()
        step = -1 if marks.get("last") else 1 if marks.get("next") or marks.get("next2") else 0 if marks.get("this") else None
        return None if step is None else calendar_unit(self._unit(m), step, today)

    def _ahead(self, m: Match[str], today: date, _: Direction) -> Days:
        return shifted_unit(self._unit(m), self._count(m), today)

    def _ago(self, m: Match[str], today: date, _: Direction) -> Days:
        return shifted_unit(self._unit(m), -self._count(m), today)

    def _month(self, m: Match[str], today: date, way: Direction) -> Days:
        return named_month(_index(self._words.months, m["m"]) + 1, today, way)

    def _day_of_month(self, m: Match[str], today: date, way: Direction) -> Days | None:
        return day_of_month(int(m["day"]), today, way)


def _day(when: date) -> Days:
    return when, when + timedelta(days=1)


def _weekday(today: date, index: int, way: Direction) -> Days:
    """The first such weekday after today, or the last before it."""
    if way == "future":
        return _day(today + timedelta(days=(index - today.weekday() - 1) % 7 + 1))
    return _day(today - timedelta(days=(today.weekday() - index - 1) % 7 + 1))


def _month(year: int, month: int) -> Days:
    return date(year, month, 1), date(year + month // 12, month % 12 + 1, 1)


def _moved(today: date, months: int) -> Days:
    index = min(max(today.year * 12 + today.month - 1 + months, 12), 9998 * 12)
    return _month(index // 12, index % 12 + 1)


def calendar_unit(unit: str, step: int, today: date) -> Days:
    """The calendar week (from Monday), month or year that is `step` away from today's; of days the day."""
    if unit == "day":
        return _day(today + timedelta(days=step))
    if unit == "week":
        monday = today - timedelta(days=today.weekday()) + timedelta(days=7 * step)
        return monday, monday + timedelta(days=7)
    return _moved(today, step) if unit == "month" else (date(today.year + step, 1, 1), date(today.year + step + 1, 1, 1))


def shifted_unit(unit: str, count: int, today: date) -> Days:
    """The time around the day that is some units away: people round, the more the further away."""
    if unit in ("day", "week"):
        days = min(abs(count) * (7 if unit == "week" else 1), _MOST_DAYS) * (1 if count > 0 else -1)
        middle = today + timedelta(days=days)
        return _day(middle) if unit == "day" else (middle - timedelta(days=3), middle + timedelta(days=4))
    return _moved(today, count) if unit == "month" else calendar_unit("year", max(min(count, 7000), 2 - today.year), today)


def named_month(month: int, today: date, way: Direction) -> Days:
    """The last such month that has begun, or the next that has not ended."""
    behind = month > today.month
    return _month(today.year - behind if way != "future" else today.year + (month < today.month), month)


def day_of_month(day: int, today: date, way: Direction) -> Days | None:
    """The last or the next such day of a month; None when there is none among the months around."""
    for step in range(3):
        first, end = _moved(today, step if way == "future" else -step)
        when = first + timedelta(days=day - 1)
        if day >= 1 and when < end and (when >= today if way == "future" else when <= today):
            return _day(when)
    return None


_READERS = [reader for words in _ALL for reader in _Times(words).readers()]


def foreign_time(text: str, today: date, way: Direction) -> Place | None:
    """The first time that the first 32,768 characters of a text name in one of these languages, and where its words begin and end."""
    best: Place | None = None
    for pattern, read in _READERS:
        m = pattern.search(text, 0, MOST_CHARS)
        if m is None or (best is not None and (best[1], -best[2]) <= (m.start(), -m.end())):
            continue
        days = read(m, today, way)
        if days is not None:
            best = days, m.start(), m.end()
    return best


HINTS = frozenset(
    token
    for words in _ALL
    for said in (*words.near, *words.weekdays, *words.months, *words.units)
    for part in said.split("|")
    for word in re.findall(r"\w+", part)
    for token in (word, word + "s", word + "e", word + "n", word + "en", word + "es")
)
"""Words of which one stands in every time that is named with blanks between words."""
CHARACTERS = re.compile("[天年月周期拜号晚]|[0-9]日")
"""What stands in every time that is named in Chinese."""
