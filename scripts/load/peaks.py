"""The greatest memory that the service uses for each kind of work, beside the limit that bounds it.

    python3 scripts/load/peaks.py PROGRAM [--rows 300000]

Each line is measured on a service that was started for it, with the settings of a machine of 4 GiB.
Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from service import PeakMemory, Service, sample  # noqa: E402

MIB = 1 << 20
CSV = {"content-type": "text/csv"}


class Scene:
    """A service with a holder's token, and the table that is sent to it."""

    def __init__(self, service: Service, table: Path, schema: dict, job: dict) -> None:
        self.service, self.table, self.schema, self.job = service, table, schema, job
        self.token = service.token("hospital", "holder")
        self.names = 0

    def declare(self, schema: dict | None = None) -> str:
        self.names += 1
        body = dict(schema or self.schema, name=f"dataset-{self.names}")
        return self.service.json(self.token, "POST", "/v1/datasets", body)["id"]

    def upload(self, dataset: str, body: object, **headers: str) -> int:
        path = f"/v1/datasets/{dataset}/submissions?allow_duplicate=true"
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.service.call(self.token, "POST", path, body, headers=CSV | named)[0]

    def with_rows(self) -> str:
        dataset = self.declare()
        with self.table.open("rb") as rows:
            assert self.upload(dataset, rows) == 201
        return dataset

    def run(self, dataset: str, job: dict) -> dict:
        body = dict(job, dataset_id=dataset)
        status, answer = self.service.call(self.token, "POST", "/v1/jobs", body)
        if status != 202:
            return {"status": f"refused with {status}"}

        return self.service.finished(self.token, json.loads(answer)["id"])


def text_schema() -> dict:
    columns = [
        {"name": "age", "role": "quasi_identifier", "kind": "numeric"},
        {"name": "sex", "role": "quasi_identifier"},
        {"name": "note", "role": "insensitive"},
        {"name": "disease", "role": "sensitive"},
    ]
    return {"name": "text", "columns": columns}


def long_text(rows: int, cell: int) -> Iterator[bytes]:
    """Rows with a distinct cell of this size each."""
    choice = random.Random(1)
    yield b"age,sex,note,disease\n"
    for _ in range(rows):
        note = choice.randbytes(cell // 2).hex()
        yield f"{choice.randint(18, 90)},{choice.choice('FM')},{note},d{choice.randint(1, 9)}\n".encode()


K_ANONYMITY = {"privacy": {"model": "k_anonymity", "k": 5}, "recoding": "local", "release": True}

# As on a machine with 4 GiB.
SETTINGS = {
    "PAIS__MEMORY__PROCESS_BYTES": str(3 << 30),
    "PAIS__MEMORY__JOB_BYTES": str(2 << 30),
    "PAIS__ORGANIZATIONS__UPLOADS": "8",
}

Work = Callable[[Scene], Callable[[], str]]


def upload_csv(scene: Scene) -> Callable[[], str]:
    dataset = scene.declare()
    return lambda: f"{scene.upload(dataset, scene.table.open('rb'))}"


def upload_at_once(scene: Scene) -> Callable[[], str]:
    def work() -> str:
        answers: list[int] = []
        datasets = [scene.declare() for _ in range(8)]
        send = lambda dataset: answers.append(scene.upload(dataset, scene.table.open("rb")))  # noqa: E731
        threads = [threading.Thread(target=send, args=(dataset,)) for dataset in datasets]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return " ".join(str(answer) for answer in sorted(answers))

    return work


def upload_text(scene: Scene) -> Callable[[], str]:
    dataset = scene.declare(text_schema())
    return lambda: f"{scene.upload(dataset, long_text(8000, 60_000))}"


def upload_bomb(scene: Scene) -> Callable[[], str]:
    dataset = scene.declare(text_schema())
    body = gzip.compress(b"age,sex,note,disease\n30,F," + b"x" * (1 << 30), 9)
    return lambda: f"{scene.upload(dataset, body, content_encoding='gzip')}"


def json_bodies(scene: Scene) -> Callable[[], str]:
    label = "x" * 280
    children = [{"label": f"{label}{n}"} for n in range(100_000)]

    def work() -> str:
        answers: list[int] = []

        def send(number: int) -> None:
            body = {"name": f"tree-{number}", "root": {"label": "*", "children": children}}
            answers.append(scene.service.call(scene.token, "POST", "/v1/taxonomies", body)[0])

        threads = [threading.Thread(target=send, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return " ".join(str(answer) for answer in sorted(answers))

    return work


def job(scene: Scene) -> Callable[[], str]:
    dataset = scene.with_rows()
    return lambda: scene.run(dataset, dict(scene.job, release=True))["status"]


def job_text(scene: Scene) -> Callable[[], str]:
    dataset = scene.declare(text_schema())
    assert scene.upload(dataset, long_text(100_000, 1000)) == 201
    return lambda: scene.run(dataset, K_ANONYMITY)["status"]


def profile(scene: Scene) -> Callable[[], str]:
    dataset = scene.with_rows()
    path = f"/v1/datasets/{dataset}/profile"
    return lambda: f"{scene.service.call(scene.token, 'GET', path)[0]}"


def downloads(scene: Scene) -> Callable[[], str]:
    dataset = scene.with_rows()
    release = scene.run(dataset, dict(scene.job, release=True))["release_id"]

    def work() -> str:
        path = f"/v1/releases/{release}/data?format="
        answers = [scene.service.call(scene.token, "GET", path + name)[0] for name in ("csv", "ndjson", "parquet")]
        return " ".join(str(answer) for answer in answers)

    return work


def lists(scene: Scene) -> Callable[[], str]:
    children = [{"label": f"leaf {n}"} for n in range(100_000)]
    for _ in range(20):
        schema = text_schema()
        schema["columns"][1]["taxonomy"] = {"label": "*", "children": children}
        scene.declare(schema)

    def work() -> str:
        sizes = [len(scene.service.call(scene.token, "GET", path)[1]) for path in ("/v1/datasets", "/v1/jobs")]
        return f"{sum(sizes) / 1024:.0f} KiB answered"

    return work


WORK: list[tuple[str, str, Work]] = [
    ("upload, CSV", "`limits.upload_bytes`; a fixed part of `memory.process_bytes`", upload_csv),
    ("8 uploads at once", "`limits.uploads`, `organizations.uploads`", upload_at_once),
    ("upload of 480 MB, 8,000 distinct cells of 60 kB", "`limits.cell_bytes`, chunks of 16 MiB", upload_text),
    ("upload, 1 MB of gzip that is one cell of 1 GiB", "`limits.cell_bytes`", upload_bomb),
    ("8 JSON bodies of 30 MB at once", "`limits.json_bytes`; a quarter of `memory.process_bytes`", json_bodies),
    ("job with release", "`memory.job_bytes`", job),
    ("job, 100 MB of distinct text", "`memory.job_bytes`", job_text),
    ("profile", "`memory.job_bytes`", profile),
    ("first download in three formats", "`memory.process_bytes`", downloads),
    ("lists; 20 datasets with 100,000 leaves each", "summaries", lists),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--only", default="", help="measure the lines that contain this text")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table, schema, job = sample(options.program, Path(folder), "blood", options.rows)
        size = table.stat().st_size / MIB
        print(f"Table: {options.rows:,} rows, {len(schema['columns'])} columns, {size:.0f} MiB of CSV.\n")
        print("| work | limit | result | before | peak |\n|---|---|---|---|---|")
        for name, limit, prepare in WORK:
            if options.only not in name:
                continue
            service = Service(options.program, SETTINGS)
            work = prepare(Scene(service, table, schema, job))
            with PeakMemory(service) as memory:
                result = work()
            figures = f"{memory.start / MIB:.0f} MiB | {memory.peak / MIB:.0f} MiB"
            print(f"| {name} | {limit} | {result} | {figures} |", flush=True)
            service.stop()


if __name__ == "__main__":
    main()
