"""The controllers under measurement as a process of their own, and what their metrics and /proc say of them."""

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections import defaultdict
from pathlib import Path

from testbed import ROOT, PorchProcess, free_port

TICKS = os.sysconf("SC_CLK_TCK")
_LINE = re.compile(r"^([a-z_]+)(?:\{([^}]*)\})? (\S+)$", re.MULTILINE)
PATIENCE = 60.0
"""Seconds until the process serves its metrics."""


class ControllersProcess:
    """``python -m controllers`` beside a server. Alone, it needs no Lease: renewals would count as writes."""

    def __init__(self, server: PorchProcess, log: Path, run: str = "variants") -> None:
        """``run`` is what the process does: ``variants`` or ``approval``."""
        self._kubeconfig = server.kubeconfig
        self._log, self._run = log, run
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process is alive."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the process; return when it answers."""
        command = [
            sys.executable,
            "-m",
            "controllers",
            "--kubeconfig",
            str(self._kubeconfig),
            "--port",
            str(self._port),
        ]
        command += ["--run", self._run, "--no-leader-election", "--log-level", "warning"]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=ROOT)
        deadline = time.monotonic() + PATIENCE
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the controllers did not start: {self._log.read_text()[-2000:]}")
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            return bool(self.metrics())
        except OSError:
            return False

    def stop(self) -> None:
        """End the process in order."""
        if self._process is not None and self.running:
            self._process.terminate()
            try:
                self._process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                raise

    def resync(self) -> None:
        """Have every variant looked at again."""
        os.kill(self.pid, signal.SIGUSR1)

    def metrics(self) -> dict[str, float]:
        """Return all series, as they are spelled, and without their labels the sums."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        return series(text)

    def cpu_seconds(self) -> float:
        """Return the processor time that the process has used; none while it does not run."""
        return cpu_seconds(self.pid) if self._process is not None else 0.0

    def most_megabytes(self) -> float:
        """Return the most resident memory that the process has had."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+)", status)
        return int(found.group(1)) / 1024 if found else 0.0


def cpu_seconds(pid: int) -> float:
    """Return the processor time of one process, its children apart."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def series(text: str) -> dict[str, float]:
    """Read metrics in Prometheus' text format; the sum of a family stands under its bare name."""
    found: dict[str, float] = defaultdict(float)
    for name, labels, value in _LINE.findall(text):
        found[name] += float(value)
        if labels:
            found[f"{name}{{{labels}}}"] += float(value)
    return dict(found)
