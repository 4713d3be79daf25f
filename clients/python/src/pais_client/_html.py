"""HTML for notebooks, built from escaped text.

No text colour and no background is set, so that it is readable in light and dark themes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

LINE = "1px solid rgba(128, 128, 128, 0.5)"
CELL = f'style="text-align:left;vertical-align:top;border-bottom:{LINE};padding:2px 8px"'


class Markup(str):
    """Text that is HTML already and is not escaped again."""

    __slots__ = ()


def text(value: object) -> Markup:
    """Returns a value as HTML: numbers are rounded, lists joined, nothing for `None`."""
    if isinstance(value, Markup):
        return value
    if value is None:
        return Markup("")
    if isinstance(value, bool):
        return Markup("yes" if value else "no")
    if isinstance(value, int):
        return Markup(f"{value:,}")
    if isinstance(value, float):
        return Markup(f"{value:.4g}")
    if isinstance(value, Mapping):
        pairs = (f"{text(key)}: {text(each)}" for key, each in value.items())
        return Markup("; ".join(pairs))
    if isinstance(value, (list, tuple)):
        return Markup(", ".join(text(each) for each in value))
    return Markup(escape(str(value)))


def lines(values: Iterable[object]) -> Markup:
    return Markup("<br>".join(text(value) for value in values))


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Markup:
    head = "".join(f"<th {CELL}>{text(each)}</th>" for each in header)
    body = "".join(
        "<tr>" + "".join(f"<td {CELL}>{text(each)}</td>" for each in row) + "</tr>" for row in rows
    )
    return Markup(
        f'<table style="border-collapse:collapse"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )


def fields(values: Mapping[str, object]) -> Markup:
    """Returns a table of names and values, without those that are `None`."""
    rows = "".join(
        f'<tr><th scope="row" {CELL}>{text(name)}</th><td {CELL}>{text(value)}</td></tr>'
        for name, value in values.items()
        if value is not None
    )
    return Markup(f'<table style="border-collapse:collapse"><tbody>{rows}</tbody></table>')


def progress(share: float) -> Markup:
    """Returns a bar for a share from 0 to 1; the browser draws it in the colours of the theme."""
    share = min(max(share, 0.0), 1.0)
    return Markup(
        f'<progress value="{share:.4f}" max="1" style="width:16em"></progress> {100 * share:.0f} %'
    )


def panel(title: str, *parts: object) -> str:
    """Returns a title with the parts that are not empty below it."""
    shown = "".join(f"<div>{text(part)}</div>" for part in parts if part)
    return f'<div class="pais"><div><strong>{text(title)}</strong></div>{shown}</div>'


def warnings(items: Sequence[Mapping[str, object]] | None) -> Markup:
    """Returns a list of warnings; empty if there are none."""
    if not items:
        return Markup("")
    entries = "".join(
        f"<li><strong>{text(each.get('code'))}</strong>: {text(each.get('detail'))}</li>"
        for each in items
    )
    return Markup(f"Warnings:<ul>{entries}</ul>")
