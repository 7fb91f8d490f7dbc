"""Runs a command in a memory cgroup of its own, version 1 or 2, and tells what it took.

Peak memory is what the process can't give back: anonymous memory, and pages of files that it has mapped. The page cache of what
it reads counts towards the limit too, but goes where the limit is reached, so the group's own maximum is told beside it.
"""

import os
import signal
import subprocess
import time
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
# Seconds between looks at the group's memory.
LOOK = 0.02


class NoCgroup(Exception):
    """Memory groups can't be made here; says why."""


def _version():
    if (ROOT / "memory").is_dir():
        return 1
    if (ROOT / "cgroup.controllers").is_file():
        return 2
    raise NoCgroup(f"{ROOT} has no memory controller")


class Group:
    """A fresh group with a limit in bytes (None: none), to be used in a `with` statement."""

    def __init__(self, limit):
        self.limit = limit
        self.version = _version()
        self.path = (ROOT / "memory" if self.version == 1 else ROOT) / f"turbospark-bench-{os.getpid()}-{time.time_ns()}"

    def __enter__(self):
        try:
            if self.version == 2:
                with open(ROOT / "cgroup.subtree_control", "w") as f:
                    f.write("+memory")
            self.path.mkdir()
            if self.limit is not None:
                (self.path / ("memory.limit_in_bytes" if self.version == 1 else "memory.max")).write_text(str(self.limit))
                if self.version == 2 and (self.path / "memory.swap.max").exists():
                    (self.path / "memory.swap.max").write_text("0")
        except OSError as error:
            raise NoCgroup(f"a memory group can't be made: {error}; this needs root") from error
        return self

    def __exit__(self, *_):
        for _ in range(100):
            try:
                self.path.rmdir()
                return
            except OSError:
                time.sleep(0.05)

    def enter(self):
        """Moves the calling process into the group."""
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def _stat(self):
        return {k: int(v) for k, v in (line.split() for line in (self.path / "memory.stat").read_text().splitlines())}

    def _held(self):
        stat = self._stat()
        if self.version == 1:
            return stat["total_rss"] + stat["total_mapped_file"]
        return stat["anon"] + stat["file_mapped"] + stat.get("kernel_stack", 0) + stat.get("pagetables", 0)

    def _maximum(self):
        file = self.path / ("memory.max_usage_in_bytes" if self.version == 1 else "memory.peak")
        return int(file.read_text()) if file.exists() else None

    def _killed(self):
        """Processes that the OOM killer has ended."""
        file = self.path / ("memory.oom_control" if self.version == 1 else "memory.events")
        lines = dict(line.split() for line in file.read_text().splitlines())
        return int(lines.get("oom_kill", 0))

    def run(self, command, *, timeout, cwd=None):
        """What became of `command`: status, its output, whether it was killed for memory or out of time, seconds and peaks."""
        peak, timed_out, started = 0, False, time.monotonic()
        # Output goes to a pipe that is emptied only at the end: it is one JSON object.
        child = subprocess.Popen(
            [str(c) for c in command],
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=self.enter,
            start_new_session=True,
        )
        try:
            while child.poll() is None:
                peak = max(peak, self._held())
                if time.monotonic() - started > timeout:
                    timed_out = True
                    os.killpg(child.pid, signal.SIGKILL)
                    break
                time.sleep(LOOK)
        except BaseException:
            child.kill()
            raise
        out, err = child.communicate()
        return {
            "status": child.returncode,
            "out": out,
            "err": err,
            "oom": self._killed() > 0,
            "timed_out": timed_out,
            "seconds": time.monotonic() - started,
            "held_bytes": peak,
            "group_bytes": self._maximum(),
        }
