"""The examples run, and the README shows them and what they print."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from service import ROOT, Service, environment

HOME = ROOT / "clients" / "python"
EXAMPLES = sorted(path.name for path in (HOME / "examples").glob("*.py"))


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_prints_what_the_readme_shows(service: Service, name: str) -> None:
    text = (HOME / "README.md").read_text(encoding="utf-8")
    mark = re.escape(f"<!-- examples/{name} -->")
    section = re.search(rf"{mark}(.*?)<!-- end -->", text, re.DOTALL)
    assert section, f"the README does not show {name}"
    blocks = dict(re.findall(r"^```(\w+)\n(.*?)^```$", section[1], re.DOTALL | re.MULTILINE))
    source = (HOME / "examples" / name).read_text(encoding="utf-8")
    assert blocks.get("python", source) == source

    env = environment() | {
        "PAIS_URL": service.url,
        "PAIS_TOKEN": service.token(f"example-{EXAMPLES.index(name)}", "holder"),
        "NO_PROXY": os.environ["NO_PROXY"],
    }
    done = subprocess.run(
        [sys.executable, str(HOME / "examples" / name)],
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    # The column widths depend on the version of pandas, so white space is ignored.
    assert done.stdout.split() == blocks["text"].split(), done.stdout


def test_there_are_the_four_examples() -> None:
    assert EXAMPLES == ["asynchronous.py", "bounds.py", "one_call.py", "schema_from_frame.py"]
