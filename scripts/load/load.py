"""Many clients on a service while it anonymizes large tables: latencies, errors and memory.

    python3 scripts/load/load.py PROGRAM [--rows 1000000] [--seconds 20]

Targets. The exit status is 1 if one is missed:

1. 150 clients ask for lists and documents and 50 download releases, each about once a second, while
   two jobs of `--rows` rows run: no error, and 99 % of the lists and documents within 100 ms.
2. The memory of the service grows by at most a fifth between the first 1,000 requests and 10,000 requests later.
3. Target 1 also holds while 100 further clients send or read a few bytes a second.

`wrk` makes the requests. It runs on the same machine as the service and takes a part of its processor time.
"""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from service import Service, sample  # noqa: E402

LATENCY = 100.0
GROWTH = 1.2
SLOW = 100
# All clients share two tokens, so the rate limit of a token is raised.
SETTINGS = {"PAIS__LIMITS__REQUESTS_PER_SECOND": "100000"}


class Scene:
    """A service with a small granted release and a large dataset."""

    def __init__(self, service: Service, folder: Path, rows: int) -> None:
        self.service = service
        self.jobs: dict[str, dict] = {}
        self.holder = service.token("hospital", "holder")
        self.recipient = service.token("bts", "recipient")
        program = service.program
        small = self.dataset(*sample(program, folder, "blood", 20_000))
        job = self.job(small, release=True)
        ended = service.finished(self.holder, job)
        self.release = ended.get("release_id") or sys.exit(f"the job did not release: {ended}")
        grant = {"recipient": "bts", "purpose": "load"}
        service.json(self.holder, "POST", f"/v1/releases/{self.release}/grants", grant)
        self.documents = [
            "/v1/datasets", "/v1/jobs", "/v1/releases", "/v1/policy", "/v1/whoami",
            f"/v1/datasets/{small}", f"/v1/jobs/{job}", f"/v1/releases/{self.release}",
        ]
        self.data = [f"/v1/releases/{self.release}/data?format={it}" for it in ("csv", "parquet")]
        self.large = self.dataset(*sample(program, folder, "encounters", rows))

    def dataset(self, table: Path, schema: dict, job: dict) -> str:
        schema["name"] = table.stem
        made = self.service.json(self.holder, "POST", "/v1/datasets", schema)
        path = f"/v1/datasets/{made['id']}/submissions"
        with table.open("rb") as rows:
            headers = {"content-type": "text/csv"}
            self.service.json(self.holder, "POST", path, rows, headers=headers)
        self.jobs[made["id"]] = job
        return made["id"]

    def job(self, dataset: str, release: bool) -> str:
        body = self.jobs[dataset] | {"dataset_id": dataset, "release": release}
        return self.service.json(self.holder, "POST", "/v1/jobs", body)["id"]

    def clients(self, count: int, seconds: int, token: str, pause: int, paths: list[str]) -> subprocess.Popen:
        """Starts `wrk`; its last line is what it measured."""
        script = str(Path(__file__).parent / "mix.lua")
        command = ["wrk", "--threads", "1", "--connections", str(count), "--duration", f"{seconds}s"]
        command += ["--timeout", "60s", "--script", script, f"http://127.0.0.1:{self.service.port}"]
        command += ["--", token, str(pause), *paths]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def mixed(self, seconds: int, pause: int = 1000) -> tuple[dict, dict]:
        """150 clients request lists and documents, and 50 download releases, at the same time."""
        documents = self.clients(150, seconds, self.holder, pause, self.documents)
        data = self.clients(50, seconds, self.recipient, pause, self.data)
        return measured(documents), measured(data)


def measured(clients: subprocess.Popen) -> dict:
    output, errors = clients.communicate()
    if clients.returncode != 0:
        sys.exit(f"wrk failed: {errors or output}")
    return json.loads(output.strip().splitlines()[-1])


class SlowClients:
    """Opens connections that send or read a few bytes a second, and closes them at the end of the context."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.drip)

    def __enter__(self) -> "SlowClients":
        port = self.scene.service.port
        self.sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(SLOW)]
        for number, client in enumerate(self.sockets):
            request = f"GET {self.scene.data[0]} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer "
            client.setblocking(False)
            if number % 2 == 0:
                client.send(f"{request}{self.scene.recipient}\r\n\r\n".encode())
            else:
                client.send(request.encode())
        self.thread.start()
        return self

    def drip(self) -> None:
        while not self.ended.wait(1):
            for number, client in enumerate(self.sockets):
                try:
                    if number % 2 == 0:
                        client.recv(16)
                    else:
                        client.send(b"x")
                except OSError:
                    # The service may close a connection that is too slow.
                    pass

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()
        for client in self.sockets:
            client.close()


class Targets:
    """Prints the measurements and collects the missed targets."""

    def __init__(self) -> None:
        self.missed: list[str] = []

    def requests(self, name: str, found: tuple[dict, dict]) -> None:
        print(f"\n{name}")
        for what, clients in zip(("lists and documents", "downloads"), found):
            print(
                f"  {what:20} {clients['requests']:6} requests in {clients['seconds']:.0f} s,"
                f" p50 {clients['p50']:.1f} p95 {clients['p95']:.1f} p99 {clients['p99']:.1f}"
                f" most {clients['most']:.1f} ms, refused {clients['refused']}, failed {clients['failed']}",
                flush=True,
            )
            if clients["refused"] + clients["failed"] > 0:
                self.missed.append(f"{name}: {what} had errors")
        if found[0]["p99"] > LATENCY:
            self.missed.append(f"{name}: 99 % of lists and documents took {found[0]['p99']:.0f} ms")


def mib(value: float) -> int:
    return round(value / (1 << 20))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=int, default=20)
    options = parser.parse_args()
    targets = Targets()
    with tempfile.TemporaryDirectory() as folder:
        service = Service(options.program, SETTINGS)
        print("making and submitting the tables", flush=True)
        scene = Scene(service, Path(folder), options.rows)
        targets.requests("idle service", scene.mixed(options.seconds))

        jobs = [scene.job(scene.large, release=False) for _ in range(2)]
        found = scene.mixed(options.seconds)
        states = [service.json(scene.holder, "GET", f"/v1/jobs/{job}")["status"] for job in jobs]
        targets.requests(f"beside two jobs of {options.rows} rows (at the end: {', '.join(states)})", found)
        for job in jobs:
            service.finished(scene.holder, job)

        with SlowClients(scene):
            targets.requests(f"beside {SLOW} slow clients", scene.mixed(options.seconds))

        scene.mixed(5, pause=50)
        before = service.resident()
        documents, data = scene.mixed(max(options.seconds, 20), pause=50)
        after = service.resident()
        requests = documents["requests"] + data["requests"]
        print(f"\nmemory: {mib(before)} MiB, and {mib(after)} MiB after {requests} requests more")
        if after > GROWTH * before:
            targets.missed.append(f"memory grew from {mib(before)} to {mib(after)} MiB")
        status = service.stop()
        if status != 0:
            targets.missed.append(f"the service ended with status {status}")
    for line in targets.missed:
        print(f"missed: {line}", file=sys.stderr)
    sys.exit(1 if targets.missed else 0)


if __name__ == "__main__":
    main()
