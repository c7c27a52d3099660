"""A machine to install packages on: systemd in its own namespaces, on an overlay of our files."""

import contextlib
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
WAIT_SECONDS_MAX = 120


def wait_for(condition: Callable[[], bool], name: str, report: Callable[[], str] = str) -> None:
    """Return as soon as a condition holds; fail with a report where it never does."""
    end = time.monotonic() + WAIT_SECONDS_MAX
    while not condition():
        assert time.monotonic() < end, f"{name}: not within {WAIT_SECONDS_MAX} s\n{report()}"
        time.sleep(0.05)


def missing() -> str | None:
    """Return what this machine lacks to boot another one, if anything."""
    if os.geteuid() != 0:
        return "needs root, for namespaces and mounts"
    if not Path("/lib/systemd/systemd").exists():
        return "systemd is missing"
    if cgroups() is None:
        return "no cgroup2 file system is mounted"
    if "overlay" not in Path("/proc/filesystems").read_text():
        return "this kernel has no overlay file system"
    return None


def cgroups() -> Path | None:
    """Return where the file system of version 2 of control groups is mounted."""
    mounts = (line.split() for line in Path("/proc/self/mounts").read_text().splitlines())
    return next((Path(where) for _, where, kind, *_ in mounts if kind == "cgroup2"), None)


class Machine:
    """A running systemd, and the way into it."""

    def __init__(self, folder: Path) -> None:
        """Boot it."""
        top = cgroups()
        assert top is not None
        folder.mkdir()
        self.group = top / f"fanin-test-{os.getpid()}"
        self.group.mkdir()
        namespaces = ("--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup")
        command = ("unshare", *namespaces, "--propagation", "private", "--fork", "--kill-child")
        enter = f'echo $$ > "{self.group}/cgroup.procs" && exec "$@"'
        boot = ("sh", str(HERE / "machine.sh"), str(folder))
        self.log = (folder.parent / "boot.log").open("w+b")
        self.process = subprocess.Popen(
            ["sh", "-c", enter, "sh", *command, *boot], stdout=self.log, stderr=subprocess.STDOUT
        )
        try:
            wait_for(self._is_running, "the machine runs", self._boot_log)
        except BaseException:
            self.stop()
            raise

    def _boot_log(self) -> str:
        return Path(self.log.name).read_text(errors="replace")

    def _first(self) -> int | None:
        """Return the process id of systemd, as this machine sees it."""
        process = self.process.pid
        assert self.process.poll() is None, f"the machine ended: {self._boot_log()}"
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        if not children:
            return None
        with contextlib.suppress(OSError):
            if Path(f"/proc/{children[0]}/comm").read_text() == "systemd\n":
                return int(children[0])
        return None

    def _is_running(self) -> bool:
        return self._first() is not None and self.run("systemctl", "is-system-running", check=False) in {
            "running",
            "degraded",
        }

    def run(self, *command: str, check: bool = True, both: bool = False) -> str:
        """Run a command in the machine, and return what it prints."""
        first = self._first()
        assert first is not None, "the machine has not booted"
        enter = ("nsenter", "--target", str(first), "--all", "--root", "--wd")
        run = subprocess.run(
            [*enter, *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if both else subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=WAIT_SECONDS_MAX,
            check=False,
        )
        assert not check or run.returncode == 0, f"{command}: {run.returncode}\n{run.stdout}\n{run.stderr}"
        return run.stdout.strip()

    def put(self, path: str, data: bytes) -> None:
        """Write a file in the machine, for root alone."""
        first = self._first()
        assert first is not None
        target = Path(f"/proc/{first}/root{path}")
        target.write_bytes(data)
        target.chmod(0o600)

    def stop(self) -> None:
        """End all its processes; its files and mounts end with them."""
        self.process.kill()
        self.process.wait()
        self.log.close()
        # Its first process ended with `unshare`; the kernel ends the others.
        with contextlib.suppress(OSError):
            (self.group / "cgroup.kill").write_text("1")
        for group in (*sorted(self.group.rglob("*/"), reverse=True), self.group):
            end = time.monotonic() + 10
            while group.is_dir() and time.monotonic() < end:
                with contextlib.suppress(OSError):
                    group.rmdir()
                    break
                time.sleep(0.02)
