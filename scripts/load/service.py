"""A running service for the load scripts: its process, requests to it, and its memory.

Only the standard library is used.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

START_TIMEOUT = 180.0
PAGE = os.sysconf("SC_PAGE_SIZE")


class Service:
    """`pais serve` on a free port, with a new data directory and the given settings."""

    def __init__(self, program: str, settings: dict[str, str] | None = None) -> None:
        self.program = program
        self.directory = tempfile.TemporaryDirectory(prefix="pais-load-")
        self.data = Path(self.directory.name) / "data"
        self.log = Path(self.directory.name) / "service.log"
        # The service gets its address at the start, so a free port is chosen here.
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        command = [program, "serve", "--listen", f"127.0.0.1:{self.port}"]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, "--data-dir", str(self.data)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment() | (settings or {}),
            )
        self.wait_ready()

    def wait_ready(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                break
            try:
                if self.call(None, "GET", "/readyz")[0] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.2)
        raise SystemExit(f"the service did not start:\n{self.log.read_text()[-4000:]}")

    def token(self, organization: str, role: str) -> str:
        """Creates a token by the command line, and its organization if it does not exist."""
        options = ["--organization", organization, "--role", role, "--data-dir", str(self.data)]
        command = [self.program, "token", "create", *options]
        done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=True)
        return done.stdout.strip()

    def call(
        self,
        token: str | None,
        method: str,
        path: str,
        body: object = None,
        headers: dict[str, str] | None = None,
        timeout: float = 600,
    ) -> tuple[int, bytes]:
        """Sends a request on a connection of its own; returns status and body.

        A body that is neither bytes nor an open file nor an iterator is sent as JSON.
        """
        headers = dict(headers or {})
        if token:
            headers["authorization"] = f"Bearer {token}"
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
            headers.setdefault("content-type", "application/json")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body=body, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def json(self, token: str, method: str, path: str, body: object = None, **options) -> dict:
        """Like `call`, for a request that has to succeed with a JSON answer."""
        status, answer = self.call(token, method, path, body, **options)
        if status >= 300:
            raise SystemExit(f"{method} {path}: {status} {answer[:2000].decode(errors='replace')}")
        return json.loads(answer) if answer else {}

    def finished(self, token: str, job: str) -> dict:
        """Waits until a job has ended."""
        while True:
            shown = self.json(token, "GET", f"/v1/jobs/{job}")
            if shown["status"] in ("succeeded", "failed", "cancelled"):
                return shown
            time.sleep(0.1)

    def resident(self) -> int:
        """The resident memory of the service, in bytes; 0 when it has ended."""
        return resident(self.process.pid)

    def database_resident(self) -> int:
        """The private memory of the database server's processes, in bytes."""
        try:
            root = int((self.data / "postgres/cluster/postmaster.pid").read_text().split()[0])
        except (OSError, ValueError, IndexError):
            return 0
        total = 0
        for process in Path("/proc").glob("[0-9]*"):
            try:
                parent = int((process / "stat").read_text().rsplit(")", 1)[1].split()[1])
                if int(process.name) != root and parent != root:
                    continue
                rollup = (process / "smaps_rollup").read_text()
            except (OSError, ValueError, IndexError):
                continue
            private = [line for line in rollup.splitlines() if line.startswith("Private_")]
            total += sum(int(line.split()[1]) << 10 for line in private)
        return total

    def stop(self) -> int:
        """Stops the service by SIGTERM; returns its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(timeout=90)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        self.directory.cleanup()
        return status


class PeakMemory:
    """Samples the resident memory of a service every 20 ms while it is used as a context."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.start = self.peak = 0
        self.ended = threading.Event()

    def __enter__(self) -> "PeakMemory":
        self.start = self.peak = self.service.resident()
        self.thread = threading.Thread(target=self.sample, daemon=True)
        self.thread.start()
        return self

    def sample(self) -> None:
        while not self.ended.wait(0.02):
            self.peak = max(self.peak, self.service.resident())

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()


def resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    except (OSError, IndexError):
        return 0


def environment() -> dict[str, str]:
    """The environment without variables that configure pais or a database."""
    prefixes = ("PAIS__", "DATABASE_URL")
    return {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}


def sample(program: str, directory: Path, name: str, rows: int) -> tuple[Path, dict, dict]:
    """Writes a table of fictitious persons; returns its CSV file, its schema and its job."""
    command = [program, "sample", name, "--rows", str(rows), "--output", str(directory)]
    subprocess.run(command, check=True)
    documents = [json.loads((directory / f"{name}.{part}.json").read_text()) for part in ("schema", "job")]
    return directory / f"{name}.csv", documents[0], documents[1]
