"""A progress bar on standard error, if that is a terminal."""

from __future__ import annotations

import importlib
import shutil
import sys
import time
from typing import Any, Protocol, TextIO


class Bar(Protocol):
    """Shows the progress of a job."""

    def show(self, progress: float, text: str) -> None: ...

    def close(self) -> None: ...


def create_bar(wanted: bool) -> Bar:
    """Returns tqdm's bar if tqdm is installed, else a text bar.

    Returns a `NoBar` if none is wanted or standard error is not a terminal.
    """
    if not wanted or sys.stderr is None or not sys.stderr.isatty():
        return NoBar()
    try:
        tqdm = importlib.import_module("tqdm").tqdm
    except ImportError:
        return TextBar(sys.stderr)
    return TqdmBar(tqdm)


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
