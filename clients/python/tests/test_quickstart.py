"""Runs the Python example of the quickstart."""

from __future__ import annotations

import os
import re
import subprocess
import sys

from service import ROOT, Service, environment


def test_the_example_prints_what_the_quickstart_shows(service: Service) -> None:
    text = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
    section = re.search(r"<!-- python-example -->(.*?)<!-- /python-example -->", text, re.DOTALL)
    assert section, "the quickstart has no example between its markers"
    blocks = dict(re.findall(r"^```(\w+)\n(.*?)^```$", section[1], re.DOTALL | re.MULTILINE))

    service.token("bts", "recipient")
    env = environment() | {
        "PAIS_URL": service.url,
        "PAIS_TOKEN": service.token("readme", "holder"),
        "NO_PROXY": os.environ["NO_PROXY"],
    }
    done = subprocess.run(
        [sys.executable, "-c", blocks["python"]],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    # The column widths depend on the version of pandas, so white space is ignored.
    assert done.stdout.split() == blocks["text"].split(), done.stdout
