"""A progress bar in a notebook, or on standard error if that is a terminal."""

from __future__ import annotations

import importlib
import shutil
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol, TextIO

from . import _html


class Bar(Protocol):
    """Shows the progress of a job."""

    def show(self, progress: float, text: str) -> None: ...

    def close(self) -> None: ...


def create_bar(wanted: bool) -> Bar:
    """Returns the bar of a notebook, or on a terminal tqdm's if tqdm is installed, else a text bar.

    Returns a `NoBar` if none is wanted, or there is neither a notebook nor a terminal.
    """
    if not wanted:
        return NoBar()
    if in_notebook():
        return NotebookBar(importlib.import_module("IPython.display").display)
    if sys.stderr is None or not sys.stderr.isatty():
        return NoBar()
    try:
        tqdm = importlib.import_module("tqdm").tqdm
    except ImportError:
        return TextBar(sys.stderr)
    return TqdmBar(tqdm)


def in_notebook() -> bool:
    """Whether this is a kernel of Jupyter. If IPython has not been imported, it cannot be one."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


class NoBar:
    """Shows nothing."""

    def show(self, progress: float, text: str) -> None:
        pass

    def close(self) -> None:
        pass


class TextBar:
    """`[########............]  40 %  running: searching  3.2 s`, rewritten in place."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._begun = time.monotonic()

    def show(self, progress: float, text: str) -> None:
        share = min(max(progress, 0.0), 1.0)
        done = round(20 * share)
        line = (
            f"[{'#' * done}{'.' * (20 - done)}] {100 * share:3.0f} %  {text}  "
            f"{time.monotonic() - self._begun:.1f} s"
        )
        width = max(shutil.get_terminal_size().columns - 1, 10)
        self._out.write(f"\r\x1b[2K{line[:width]}")
        self._out.flush()

    def close(self) -> None:
        self._out.write("\n")
        self._out.flush()


class TqdmBar:
    """tqdm's bar."""

    def __init__(self, tqdm: Any) -> None:
        self._bar = tqdm(total=1.0, bar_format="{l_bar}{bar}| {elapsed}{postfix}", file=sys.stderr)

    def show(self, progress: float, text: str) -> None:
        self._bar.n = min(max(progress, 0.0), 1.0)
        self._bar.set_postfix_str(text)

    def close(self) -> None:
        self._bar.close()


class BarHtml:
    """The state of a bar, as a notebook shows it."""

    def __init__(self, share: float, text: str) -> None:
        self._share, self._text = share, text

    def _repr_html_(self) -> str:
        return f"<div>{_html.progress(self._share)} {_html.text(self._text)}</div>"

    def __repr__(self) -> str:
        return f"{100 * self._share:.0f} % {self._text}"


class NotebookBar:
    """A bar in the output of a cell, which is replaced in place.

    `display` is that of `IPython.display`.
    """

    def __init__(self, display: Callable[..., Any]) -> None:
        self._handle = display(BarHtml(0.0, ""), display_id=True)

    def show(self, progress: float, text: str) -> None:
        self._handle.update(BarHtml(min(max(progress, 0.0), 1.0), text))

    def close(self) -> None:
        pass
