"""The service that the tests start: its process and its tokens."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import httpx

ROOT = Path(__file__).resolve().parents[3]
ADULT = ROOT / "tests" / "data" / "adult"
START_TIMEOUT = 120.0


class Service:
    """`pais serve` on a free port, with its data in a temporary directory."""

    def __init__(self, program: str) -> None:
        self.program = program
        self.directory = tempfile.TemporaryDirectory(prefix="pais-python-")
        self.data = Path(self.directory.name) / "data"
        self.log = Path(self.directory.name) / "service.log"
        # Granted to the hospital for Parquet files of its own.
        self.share = Path(self.directory.name) / "share"
        self.share.mkdir()
        # The service gets its address at the start, so a free port is chosen here.
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{probe.getsockname()[1]}"
        self.url = f"http://{self.address}"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [program, "serve", "--listen", self.address, "--data-dir", str(self.data)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment()
                | {
                    "PAIS__OBJECT_STORES__SHARE__URL": f"file://{self.share}",
                    "PAIS__OBJECT_STORES__SHARE__ORGANIZATIONS": "[hospital]",
                },
            )

    def wait_ready(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                break
            try:
                if httpx.get(f"{self.url}/readyz", trust_env=False).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.1)
        raise RuntimeError(f"the service did not start:\n{self.log.read_text()[-4000:]}")

    def token(self, organization: str, role: str) -> str:
        """Creates a token by the command line, and its organization if it does not exist."""
        options = ["--organization", organization, "--role", role, "--data-dir", str(self.data)]
        done = subprocess.run(
            [self.program, "token", "create", *options],
            capture_output=True,
            text=True,
            env=environment(),
            timeout=START_TIMEOUT,
        )
        if done.returncode != 0:
            raise RuntimeError(f"`pais token create` failed:\n{done.stderr}")
        return done.stdout.strip()

    def stop(self) -> int:
        """Stops the service by SIGTERM, as an operator would, and returns its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(timeout=90)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        self.directory.cleanup()
        return status


def environment() -> dict[str, str]:
    """Returns the environment without variables that configure pais or a database."""
    prefixes = ("PAIS__", "DATABASE_URL")
    return {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
