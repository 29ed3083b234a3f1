"""Find the numbers of a text, in digits or words, and their kind: day, year, time of day or plain."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from agent_memory.foundation.text.terms import fold

NumberKind = Literal["plain", "date", "year", "clock"]

_TOKEN = re.compile(r"\d++(?:[.,:]\d++)*+|[〇零一二两三四五六七八九十百千]++|(?:[^\W\d_\u3400-\u9fff]|[\u0900-\u0963])++|[\u3400-\u9fff]")
_GROUPS = re.compile(r"\d{1,3}(?:[.,]\d{3})++")
_DECIMAL = re.compile(r"(?<!\d)\d++[.,]\d{1,2}")
_ISO = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_CLOCK = re.compile(r"\d{1,2}:\d{2}(?::\d{2})?")
_CHINESE = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_CHINESE_UNITS = {"十": 10, "百": 100, "千": 1000}
_MOST_DIGITS = 18
_YEARS = range(1900, 2101)

_WORDS = """
2 two zwei dos deux due dois duas twee
3 three drei tres trois tre drie
4 four vier cuatro quatre quattro quatro
5 five funf cinco cinq cinque vijf
6 six sechs seis sei zes
7 seven sieben siete sept sette sete zeven
8 eight acht ocho huit otto oito
9 nine neun nueve neuf nove negen
10 ten zehn diez dix dieci dez tien
11 eleven elf once onze undici
12 twelve zwolf doce douze dodici doze twaalf
13 thirteen dreizehn trece treize tredici treze dertien
14 fourteen vierzehn catorce quatorze quattordici veertien
15 fifteen funfzehn quince quinze quindici vijftien
16 sixteen sechzehn dieciseis seize sedici zestien
17 seventeen siebzehn
18 eighteen achtzehn
19 nineteen neunzehn
20 twenty zwanzig veinte vingt venti vinte twintig
30 thirty dreissig treinta trente trenta trinta dertig
40 forty vierzig cuarenta quarante quaranta quarenta veertig
50 fifty funfzig cincuenta cinquante cinquanta cinquenta vijftig
60 sixty sechzig sesenta soixante sessanta sessenta zestig
70 seventy siebzig setenta
80 eighty achtzig ochenta
90 ninety neunzig noventa
"""
_WORD_NUMBERS = {word: row.split()[0] for row in _WORDS.strip().splitlines() for word in row.split()[1:]}
# Words with another meaning: "sei" is Italian for "you are", "once" is English.
_DOUBTFUL = frozenset({"sei", "once", "elf", "due", "sept", "tre", "dix"})
_MONTHS = """
1 january jan januar janner enero janvier gennaio janeiro januari styczen stycznia январь января ocak يناير जनवरी
2 february feb februar febrero fevrier febbraio fevereiro februari luty lutego февраль февраля şubat فبراير फरवरी
3 march mar marz marzo mars marco maart marzec marca марта март mart مارس मार्च
4 april apr abril avril aprile kwiecien kwietnia апрель апреля nisan أبريل ابريل अप्रैल
5 may mai mayo maggio maio mei maj maja май мая mayıs مايو मई
6 june jun juni junio juin giugno junho czerwiec czerwca июнь июня haziran يونيو जून
7 july jul juli julio juillet luglio julho lipiec lipca июль июля temmuz يوليو जुलाई
8 august aug agosto aout augustus sierpien sierpnia август августа ağustos أغسطس अगस्त
9 september sep sept septiembre setiembre septembre settembre setembro wrzesien wrzesnia сентябрь сентября eylül سبتمبر सितंबर सितम्बर
10 october oct oktober octubre octobre ottobre outubro pazdziernik pazdziernika октябрь октября ekim أكتوبر अक्टूबर
11 november nov noviembre novembre novembro listopad listopada ноябрь ноября kasım نوفمبر नवंबर नवम्बर
12 december dec dezember diciembre decembre dicembre dezembro grudzien grudnia декабрь декабря aralik ديسمبر दिसंबर दिसम्बर
"""
_MONTH_NUMBERS = {fold(word): row.split()[0] for row in _MONTHS.strip().splitlines() for word in row.split()[1:]}
MONTHS = frozenset(_MONTH_NUMBERS)
_DAY_WORDS = """
monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays sundays
montag dienstag mittwoch donnerstag freitag samstag sonntag lunes martes miercoles jueves viernes sabado domingo
lundi mardi mercredi jeudi vendredi samedi dimanche today tomorrow yesterday tonight heute gestern morgen hoy ayer manana
aujourd hui hier demain week weeks month months year years woche monat jahr semana mes ano semaine mois annee
lunedi martedi mercoledi giovedi venerdi sabato domenica segunda terca quarta quinta sexta maandag dinsdag woensdag donderdag vrijdag
zaterdag zondag понедельник вторник среда среду четверг пятница пятницу суббота субботу воскресенье poniedzialek wtorek sroda srode
czwartek piatek sobota sobote niedziela niedziele pazartesi salı çarşamba perşembe cuma cumartesi
oggi ieri domani hoje ontem amanha vandaag gisteren morgen
сегодня вчера завтра dzis dzisiaj wczoraj jutro bugün dün yarın
"""
DATE_WORDS = MONTHS | frozenset(map(fold, _DAY_WORDS.split()))
_DAY_SIGNS = ("月", "日", "号", "월", "일")
_BETWEEN_WORDS = "of de del den der am the st nd rd th du le di van er ere o a go го е ое من"
_BETWEEN = frozenset(_BETWEEN_WORDS.split())


class Number(NamedTuple):
    """A number in its plainest form ("2,310" is "2310"), and its kind."""

    value: str
    kind: NumberKind


def is_number_word(word: str) -> bool:
    return word in _WORD_NUMBERS


def month_numbers(text: str) -> list[str]:
    """Return the numbers of months named in words: "10" of "on 8 October"."""
    return [number for m in _TOKEN.finditer(text) if (number := _MONTH_NUMBERS.get(fold(m[0]))) is not None]


def numbers(text: str) -> list[Number]:
    """Return the numbers of a text in order; a time of day gives hours and minutes. "One" is an article, no number."""
    tokens = [(m[0], fold(m[0])) for m in _TOKEN.finditer(text)]
    iso = {part for date in _ISO.findall(text) for part in date.split("-")}
    result: list[Number] = []
    for at, (token, word) in enumerate(tokens):
        if token[0].isdigit():
            result += _digits(token, tokens, at, iso)
        elif token[0] in _CHINESE or token[0] in _CHINESE_UNITS:
            value = _chinese(token)
            if value > 1:
                result.append(Number(str(value), "date" if _next(tokens, at) in _DAY_SIGNS else "plain"))
        elif (number := _WORD_NUMBERS.get(word)) and word not in _DOUBTFUL:
            result.append(Number(number, "plain"))
    return result


def _digits(token: str, tokens: list[tuple[str, str]], at: int, iso: set[str]) -> list[Number]:
    if _CLOCK.fullmatch(token):
        return [Number(_plain(part), "clock") for part in token.split(":")[:2]]
    if _GROUPS.fullmatch(token):
        return [Number(_plain(token.replace(",", "").replace(".", "")), "plain")]
    if _DECIMAL.fullmatch(token):
        return [Number(token.replace(",", "."), "plain")]
    parts = [part for part in re.split(r"[.,:]", token) if part]
    return [Number(_plain(part), _kind(part, tokens, at, iso) if len(parts) == 1 else "plain") for part in parts]


def _kind(part: str, tokens: list[tuple[str, str]], at: int, iso: set[str]) -> NumberKind:
    if len(part) == 4 and int(part) in _YEARS:
        return "year"
    if len(part) > 2:
        return "plain"
    near = {_next(tokens, at), _next(tokens, at, skip=True), _previous(tokens, at)}
    if part in iso or not near.isdisjoint(MONTHS) or _next(tokens, at) in _DAY_SIGNS:
        return "date" if 1 <= int(part) <= 31 else "plain"
    return "plain"


def _next(tokens: list[tuple[str, str]], at: int, *, skip: bool = False) -> str:
    """Return the next word; with `skip` the next one that is no preposition or ending."""
    at += 1
    while skip and at < len(tokens) and tokens[at][1] in _BETWEEN:
        at += 1
    word = tokens[at][1] if at < len(tokens) else ""
    return word[:1] if word[:1] in ("年", "년", *_DAY_SIGNS) else word


def _previous(tokens: list[tuple[str, str]], at: int) -> str:
    at -= 1
    while at > 0 and tokens[at][1] in _BETWEEN:
        at -= 1
    return tokens[at][1] if at >= 0 else ""


def _plain(digits: str) -> str:
    return str(int(digits)) if len(digits) <= _MOST_DIGITS else digits.lstrip("0")


def _chinese(token: str) -> int:
    if not any(char in _CHINESE_UNITS for char in token):
        return int("".join(str(_CHINESE[char]) for char in token)) if len(token) <= _MOST_DIGITS else 0
    total, digit = 0, 0
    for char in token:
        if char in _CHINESE:
            digit = _CHINESE[char]
        else:
            total += (digit or 1) * _CHINESE_UNITS[char]
            digit = 0
    return total + digit
