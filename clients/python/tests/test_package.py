"""The package of a release, checked by the program and by a validator of the standard."""

from __future__ import annotations

import json
import os
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import frictionless
import pytest
from service import Service

from pais_client import Client
from pais_client.types import Column

COLUMNS: list[Column] = [
    {"name": "patient", "role": "identifier"},
    {"name": "age", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 120]},
    {
        "name": "born",
        "role": "quasi_identifier",
        "kind": "date",
        "taxonomy": {"generate": "calendar"},
    },
    {"name": "units", "role": "insensitive", "kind": "numeric", "missing": ["NA"]},
    {"name": "drugs", "role": "insensitive", "kind": "set"},
    {"name": "note", "role": "insensitive"},
    {"name": "Diagnosis", "role": "sensitive", "missing": ["."]},
]
ROWS = "patient,age,born,units,drugs,note,Diagnosis\n" + "".join(
    f"{n},{20 + n},19{50 + n % 20}-03-{1 + n % 28:02},{'NA' if n % 7 == 0 else n % 5},"
    f"iron|zinc,{['?', 'NA', ''][n % 3]},{['A', 'NA', '?', '.'][n % 4]}\n"
    for n in range(60)
)
MODELS: list[dict[str, Any]] = [
    {"model": "k_anonymity", "k": 5},
    {"model": "l_diversity", "k": 5, "l": 2},
]


@pytest.fixture(scope="module", params=MODELS, ids=lambda model: str(model["model"]))
def package(request: Any, connect: Callable[[str, str], Client], tmp_path_factory: Any) -> Path:
    client = connect("clinic-of-packages", "holder")
    name = f"packages {request.param['model']}"
    dataset = client.create_dataset(name, COLUMNS)["id"]
    client.submit(dataset, ROWS.encode())
    job = client.create_job(dataset, request.param, release=True)
    release = str(client.wait(job["id"], timeout=120)["release_id"])
    file: Path = tmp_path_factory.mktemp("package") / "release.zip"
    return client.download_package(release, file)


def test_a_validator_of_the_standard_accepts_it(package: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(package) as archive:
        assert archive.testzip() is None
        archive.extractall(tmp_path)
    report = frictionless.validate(str(tmp_path / "datapackage.json"), type="package")
    assert report.valid, report.flatten(["title", "message"])
    described = json.loads((tmp_path / "datapackage.json").read_text())
    assert len(report.tasks) == len(described["resources"]) >= 2

    table = next(tmp_path.glob("*.csv"))
    table.write_bytes(table.read_bytes().replace(b"\n", b"x\n", 1))
    changed = frictionless.validate(str(tmp_path / "datapackage.json"), type="package")
    assert not changed.valid


def test_a_word_for_missing_of_one_column_is_a_value_of_another(
    package: Path, tmp_path: Path
) -> None:
    with zipfile.ZipFile(package) as archive:
        archive.extractall(tmp_path)
    described: Any = frictionless.Package(str(tmp_path / "datapackage.json"))
    tables = [each.read_rows() for each in described.resources if each.format == "csv"]

    def values(column: str) -> set[Any]:
        return {row[column] for rows in tables for row in rows if column in row}

    assert values("units") == {None, 0, 1, 2, 3, 4}
    assert values("note") == {"?", "NA", None}
    assert values("Diagnosis") == {"A", "NA", "?", None}


def run(service: Service, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [service.program, "verify-package", *arguments],
        capture_output=True,
        text=True,
        env=dict(os.environ),
        timeout=60,
    )


def test_the_program_finds_a_flipped_byte(service: Service, package: Path, tmp_path: Path) -> None:
    good = run(service, str(package))
    assert good.returncode == 0, good.stderr
    assert "from the package itself" in good.stdout
    key = f"{service.url}/.well-known/pais-signing-key.json"
    pinned = run(service, str(package), "--key", key)
    assert pinned.returncode == 0, pinned.stderr
    assert "this is the given key" in pinned.stdout

    content = bytearray(package.read_bytes())
    bad = tmp_path / "bad.zip"
    for at in range(0, len(content), len(content) // 20):
        content[at] ^= 1
        bad.write_bytes(content)
        content[at] ^= 1
        assert run(service, str(bad)).returncode == 1, f"byte {at}"
    bad.write_bytes(bytes(content) + b"\n")
    assert run(service, str(bad)).returncode == 1

    other = tmp_path / "key.json"
    other.write_text(json.dumps({"kty": "OKP", "crv": "Ed25519", "x": "A" * 43}))
    assert run(service, str(package), "--key", str(other)).returncode == 1
    other.write_text("{}")
    assert run(service, str(package), "--key", str(other)).returncode == 2
    assert run(service, str(tmp_path / "none.zip")).returncode == 2
