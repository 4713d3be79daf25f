"""How the cells of a column are read, as its codebook says."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from datetime import date, datetime, timezone
from typing import Any

from .intervals import end_text

ORDERED = ("numeric", "date", "datetime")
ISO = re.compile(r"\d{4}-\d{2}-\d{2}")
FRACTION = re.compile(r"%\.\d?f")
# Words of `strftime` in the service, for which `strptime` has others.
WORDS = {
    "%D": "%m/%d/%y",
    "%F": "%Y-%m-%d",
    "%R": "%H:%M",
    "%T": "%H:%M:%S",
    "%e": "%d",
    "%h": "%b",
    "%k": "%H",
    "%l": "%I",
}


def missing_words(column: Mapping[str, Any]) -> set[str]:
    """Returns the cells that mean missing, as they are written in CSV.

    Numbers and dates are also those that are equal to a word.
    """
    declared: list[str] = column.get("missing") or [""]
    words = {*declared, *(canonical(word, column) for word in declared)}
    return words | {""} if column["kind"] in ORDERED else words


def canonical(text: str, column: Mapping[str, Any]) -> str:
    """Returns the one form in which the service writes a cell."""
    kind = column["kind"]
    try:
        if kind == "numeric":
            return end_text(float(text))
        if kind in ORDERED:
            return date_text(read_date(text, column), kind)
    except ValueError:
        pass
    if kind not in ORDERED and column["role"] == "insensitive":
        return text.rstrip("\r")
    return unicodedata.normalize("NFC", text.strip())


def read_date(text: str, column: Mapping[str, Any]) -> datetime:
    """Reads a date in ISO 8601 or in the format of the column; one with a zone becomes UTC.

    Raises `ValueError` for other text.
    """
    text = text.strip()
    form: str | None = column.get("format")
    if form is None or ISO.match(text):
        found = datetime.fromisoformat(text)
    else:
        found = read_in_format(text, form)
    return without_zone(found)


def read_in_format(text: str, form: str) -> datetime:
    form = re.sub(r"%[-_0:#]+", "%", form)
    form = re.sub("%[a-zA-Z%]", lambda word: WORDS.get(word[0], word[0]), form)
    try:
        return datetime.strptime(text, FRACTION.sub(".%f", form))
    except ValueError:
        # A fraction of a second may be absent.
        return datetime.strptime(text, FRACTION.sub("", form))


def without_zone(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        return moment
    return moment.astimezone(timezone.utc).replace(tzinfo=None)


def date_text(moment: date, kind: str) -> str:
    """Returns a day or a moment in ISO 8601, with the digits of milliseconds that are needed."""
    if kind == "date" or not isinstance(moment, datetime):
        return moment.strftime("%Y-%m-%d").zfill(10)
    whole, _, fraction = moment.isoformat(timespec="milliseconds").partition(".")
    fraction = fraction.rstrip("0")
    return f"{whole}.{fraction}" if fraction else whole
