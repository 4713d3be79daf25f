"""Random mixed load on a service, while its memory is watched.

    python3 scripts/load/soak.py PROGRAM [--minutes 10] [--seed N]

Several organizations upload, anonymize, list, download and delete at random; some clients are slow,
broken or unauthorized. Fails if the service dies, answers an unexpected status, or if its resident
memory in the last third of the time is more than a fifth above that of the second third.
"""

from __future__ import annotations

import argparse
import collections
import gzip
import json
import random
import socket
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from service import Service, sample  # noqa: E402

ORGANIZATIONS = 4
CLIENTS = 6
# What a client under load may get: its own faults, limits of its organization, and a busy service.
EXPECTED = {200, 201, 202, 204, 400, 401, 404, 408, 409, 413, 415, 422, 429, 503}
GROWTH = 1.2
# As on a machine with 4 GiB. Wrong tokens are counted, and do not end the load.
SETTINGS = {
    "PAIS__MEMORY__PROCESS_BYTES": str(3 << 30),
    "PAIS__MEMORY__JOB_BYTES": str(2 << 30),
    "PAIS__LIMITS__REFUSED_TOKENS_PER_MINUTE": "1000",
}


class Load:
    """The state that all clients share."""

    def __init__(self, service: Service, csv: bytes, schema: dict, job: dict, seed: int) -> None:
        self.service, self.csv, self.schema, self.job = service, csv, schema, job
        self.seed = seed
        self.ended = threading.Event()
        self.counts: collections.Counter[tuple[str, int]] = collections.Counter()
        self.unexpected: list[str] = []
        self.tokens = [service.token(f"hospital-{n}", "holder") for n in range(ORGANIZATIONS)]

    def client(self, number: int) -> None:
        choice = random.Random(f"{self.seed}-{number}")
        actions = [
            self.anonymize, self.anonymize, self.broken, self.lists, self.profile,
            self.slow, self.unauthorized, self.large_json, self.cancelled,
        ]
        while not self.ended.is_set():
            token = choice.choice(self.tokens)
            action = choice.choice(actions)
            try:
                action(choice, token)
            except OSError as error:
                if self.service.process.poll() is not None:
                    self.unexpected.append(f"the service ended during {action.__name__}")
                    self.ended.set()
                elif not isinstance(error, (ConnectionError, TimeoutError, socket.timeout)):
                    self.unexpected.append(f"{action.__name__}: {error!r}")

    def call(self, kind: str, *arguments, **options) -> tuple[int, bytes]:
        status, answer = self.service.call(*arguments, **options)
        self.counts[kind, status] += 1
        if status not in EXPECTED:
            self.unexpected.append(f"{kind}: {status} {answer[:300]!r}")
        return status, answer

    def dataset(self, choice: random.Random, token: str) -> str | None:
        schema = dict(self.schema, name=f"load-{choice.getrandbits(64):x}")
        status, answer = self.call("declare", token, "POST", "/v1/datasets", schema)
        return json.loads(answer)["id"] if status == 201 else None

    def upload(self, choice: random.Random, token: str, dataset: str, body: bytes) -> int:
        headers = {"content-type": "text/csv"}
        if choice.random() < 0.5:
            body = gzip.compress(body, 1)
            headers["content-encoding"] = "gzip"
        path = f"/v1/datasets/{dataset}/submissions"
        return self.call("upload", token, "POST", path, body, headers=headers)[0]

    def anonymize(self, choice: random.Random, token: str) -> None:
        dataset = self.dataset(choice, token)
        if dataset is None:
            return
        try:
            lines = self.csv.splitlines(keepends=True)
            rows = choice.randint(1000, len(lines) - 1)
            if self.upload(choice, token, dataset, b"".join(lines[: rows + 1])) != 201:
                return
            job = dict(self.job, dataset_id=dataset, release=True)
            status, answer = self.call("job", token, "POST", "/v1/jobs", job)
            if status != 202:
                return
            ended = self.service.finished(token, json.loads(answer)["id"])
            self.counts[f"job {ended['status']}", 0] += 1
            release = ended.get("release_id")
            for format in ("csv", "ndjson", "parquet") if release else ():
                self.call("download", token, "GET", f"/v1/releases/{release}/data?format={format}")
            if release:
                self.call("report", token, "GET", f"/v1/releases/{release}/report")
        finally:
            self.call("delete", token, "DELETE", f"/v1/datasets/{dataset}")

    def cancelled(self, choice: random.Random, token: str) -> None:
        dataset = self.dataset(choice, token)
        if dataset is None:
            return
        try:
            if self.upload(choice, token, dataset, self.csv) != 201:
                return
            job = dict(self.job, dataset_id=dataset)
            status, answer = self.call("job", token, "POST", "/v1/jobs", job)
            if status == 202:
                time.sleep(choice.random() / 2)
                self.call("cancel", token, "DELETE", f"/v1/jobs/{json.loads(answer)['id']}")
        finally:
            self.call("delete", token, "DELETE", f"/v1/datasets/{dataset}")

    def broken(self, choice: random.Random, token: str) -> None:
        dataset = self.dataset(choice, token)
        if dataset is None:
            return
        body = bytearray(self.csv[: choice.randint(1, 1 << 20)])
        for _ in range(choice.randint(1, 50)):
            body[choice.randrange(len(body))] = choice.randrange(256)
        kinds = ["text/csv", "application/x-ndjson", "application/vnd.apache.parquet"]
        headers = {"content-type": choice.choice(kinds)}
        path = f"/v1/datasets/{dataset}/submissions"
        self.call("broken upload", token, "POST", path, bytes(body), headers=headers)
        self.call("delete", token, "DELETE", f"/v1/datasets/{dataset}")

    def lists(self, choice: random.Random, token: str) -> None:
        for path in ("datasets", "jobs?limit=1000", "releases", "taxonomies"):
            self.call("list", token, "GET", f"/v1/{path}")

    def profile(self, choice: random.Random, token: str) -> None:
        dataset = self.dataset(choice, token)
        if dataset is None:
            return
        if self.upload(choice, token, dataset, self.csv) == 201:
            self.call("profile", token, "GET", f"/v1/datasets/{dataset}/profile")
        self.call("delete", token, "DELETE", f"/v1/datasets/{dataset}")

    def slow(self, choice: random.Random, token: str) -> None:
        """A client that sends half a request, waits and disconnects."""
        with socket.create_connection(("127.0.0.1", self.service.port), timeout=30) as client:
            client.sendall(b"POST /v1/jobs HTTP/1.1\r\nhost: x\r\n"[: choice.randint(1, 30)])
            time.sleep(choice.random() * 3)
        self.counts["slow client", 0] += 1

    def unauthorized(self, choice: random.Random, token: str) -> None:
        wrong = f"pais_{choice.getrandbits(256):064x}"
        self.call("wrong token", wrong, "GET", "/v1/datasets")

    def large_json(self, choice: random.Random, token: str) -> None:
        leaves = choice.randint(1000, 100_000)
        children = [{"label": f"leaf-{n}"} for n in range(leaves)]
        name = f"tree-{choice.getrandbits(64):x}"
        body = {"name": name, "root": {"label": "*", "children": children}}
        status, answer = self.call("taxonomy", token, "POST", "/v1/taxonomies", body)
        if status == 201:
            self.call("delete", token, "DELETE", f"/v1/taxonomies/{json.loads(answer)['id']}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        table, schema, job = sample(options.program, Path(folder), "blood", options.rows)
        csv = table.read_bytes()
    service = Service(options.program, SETTINGS)
    load = Load(service, csv, schema, job, options.seed)
    clients = [threading.Thread(target=load.client, args=(n,), daemon=True) for n in range(CLIENTS)]
    for client in clients:
        client.start()
    samples: list[int] = []
    began = shown = time.monotonic()
    while time.monotonic() - began < options.minutes * 60 and not load.ended.is_set():
        time.sleep(1)
        samples.append(service.resident())
        if time.monotonic() - shown >= 60:
            shown = time.monotonic()
            minute = samples[-60:]
            requests = sum(load.counts.values())
            database = service.database_resident()
            print(
                f"minute {round((shown - began) / 60):3}: resident mean {mib(statistics.mean(minute))}"
                f" greatest {mib(max(minute))} MiB, database {mib(database)} MiB,"
                f" {requests} requests",
                flush=True,
            )
    load.ended.set()
    for client in clients:
        client.join(timeout=120)
    status = service.stop()
    for (kind, code), count in sorted(load.counts.items()):
        print(f"{kind:20} {code or '':4} {count}")
    third = len(samples) // 3
    second, last = (statistics.mean(part) for part in (samples[third : 2 * third], samples[2 * third :]))
    print(f"second third {mib(second)} MiB, last third {mib(last)} MiB, exit status {status}")
    for line in load.unexpected[:20]:
        print(f"unexpected: {line}", file=sys.stderr)
    if load.unexpected or status != 0 or last > GROWTH * second:
        sys.exit(1)


def mib(value: float) -> int:
    return round(value / (1 << 20))


if __name__ == "__main__":
    main()
