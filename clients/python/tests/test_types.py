"""A type checker accepts the client, its tests and its examples, and finds misspelt words."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from service import ROOT

HOME = ROOT / "clients" / "python"
EXAMPLE = HOME / "examples" / "one_call.py"


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mypy")


def mypy(cache: Path, *files: Path) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-pretty", "--cache-dir", str(cache),
         *map(str, files)],
        cwd=HOME,
        capture_output=True,
        text=True,
        timeout=300,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_client_tests_and_examples_are_typed_strictly(cache: Path) -> None:
    status, output = mypy(cache)
    assert status == 0, output


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('"age": "quasi_identifier"', '"age": "quasi_identifer"'),
        ('"model": "lkc"', '"model": "lck"'),
        ("hierarchies={", "hierarchy={"),
        ("warning['code']", "warning['word']"),
        ("['smallest_group']", "['smalest_group']"),
    ],
)
def test_a_misspelt_word_is_found_and_named(
    cache: Path, tmp_path: Path, right: str, wrong: str
) -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    assert right in text
    misspelt = tmp_path / "misspelt.py"
    misspelt.write_text(text.replace(right, wrong), encoding="utf-8")
    status, output = mypy(cache, misspelt)
    assert status == 1, output
    word = re.findall(r"\w+", wrong)[-1]
    errors = [each for each in output.splitlines() if ": error:" in each]
    assert any(word in each for each in errors), output
    assert all("misspelt.py" in each for each in errors), output


def test_the_example_itself_passes(cache: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copied.py"
    copy.write_text(EXAMPLE.read_text(encoding="utf-8"), encoding="utf-8")
    status, output = mypy(cache, copy)
    assert status == 0, output
