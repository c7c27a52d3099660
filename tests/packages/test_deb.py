"""The Debian package: installed on a machine of its own, where its units run a system."""

import contextlib
import re
import secrets
import subprocess
import tomllib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import machine
import pytest
from machine import Machine, wait_for
from package_files import SYSTEM, make

ROLES = ("logger-0", "readout-0", "readout-1", "readout-2", "readout-3", "collector-0", "supervisor-0")
UNITS = tuple(f"fanin@{role}.service" for role in ROLES)
# `systemd-analyze security` of the units: 0 is the most confined, 10 the least.
EXPOSURE_MAX = {"fanin@readout-0.service": 4.0, "fanin-switch@tor.service": 4.7}


@pytest.fixture(scope="module")
def deb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the package."""
    return make("deb", tmp_path_factory.mktemp("deb"))


@pytest.fixture(scope="module")
def host(deb: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """Return a machine on which the package is installed."""
    if reason := machine.missing():
        pytest.skip(reason)
    host = Machine(tmp_path_factory.mktemp("machine") / "files")
    try:
        host.put("/tmp/fanin.deb", deb.read_bytes())
        install(host)
        yield host
    finally:
        host.stop()


def install(host: Machine) -> None:
    """Install the package, without the index of all manual pages that Debian then makes."""
    host.run("dpkg", "--no-triggers", "--install", "/tmp/fanin.deb", both=True)


def state(host: Machine, unit: str, *names: str) -> list[str]:
    """Return properties of a unit."""
    found = host.run("systemctl", "show", unit, *(f"--property={name}" for name in names)).splitlines()
    values = dict(line.split("=", 1) for line in found)
    return [values[name] for name in names]


def stored_bytes(host: Machine) -> int:
    """Return the bytes of stored events."""
    return sum(map(int, host.run("find", "/data/fanin", "-name", "logger-*", "-printf", "%s\n").split()))


def wait_for_more_events(host: Machine) -> None:
    """Return when events were stored that were not stored before."""
    before = stored_bytes(host)
    report = lambda: host.run("journalctl", "-u", "fanin@*", "-n", "60", both=True)  # noqa: E731
    wait_for(lambda: stored_bytes(host) > before, f"more than {before} B stored", report)


def ask(host: Machine, port: int, page: str) -> str:
    """Return a page that a process serves."""
    program = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())"
    return host.run("python3", "-c", program, f"http://127.0.0.1:{port}/{page}")


def test_the_package_holds_what_it_should(deb: Path, root: Path) -> None:
    version = tomllib.loads((root / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    fields = subprocess.run(["dpkg-deb", "--field", deb], capture_output=True, text=True, check=True).stdout
    assert f"Version: {version}\n" in fields
    assert re.search(r"^Depends: .*libc6 \(>= [\d.]+\)", fields, re.MULTILINE), fields
    listing = subprocess.run(["dpkg-deb", "--contents", deb], capture_output=True, text=True, check=True)
    lines = [line.split(maxsplit=5) for line in listing.stdout.splitlines()]
    assert {owner for _, owner, *_ in lines} == {"root/root"}
    assert {date for *_, date, _, _ in lines} == {"2023-11-14"}
    writable = [line for line in lines if "w" in line[0][4:]]
    assert not writable
    names = {line[5].removeprefix(".") for line in lines}
    for name in ("/usr/bin/fanin", "/usr/share/man/man1/fanin-sim.1.gz", "/etc/fanin/"):
        assert name in names
    # Programs of others stand under /etc by their packages' names; ours has only its folder there.
    assert {name for name in names if name.startswith("/etc/")} == {"/etc/", "/etc/fanin/"}


def test_systemd_reads_the_units_without_complaint(host: Machine) -> None:
    names = ("fanin@.service", "fanin-drain.service", "fanin-switch@.service", "fanin.target")
    paths = (f"/usr/lib/systemd/system/{name}" for name in names)
    assert host.run("systemd-analyze", "verify", "--man=no", *paths, both=True) == ""
    for unit, limit in EXPOSURE_MAX.items():
        said = host.run("systemd-analyze", "security", "--no-pager", unit)
        exposure = re.search(r"Overall exposure level for \S+: ([\d.]+)", said)
        assert exposure, said
        assert float(exposure[1]) <= limit, said


def test_pages_and_completions_are_where_programs_look(host: Machine) -> None:
    assert "fanin-node" in host.run("sh", "-c", "gzip -dc /usr/share/man/man1/fanin-node.1.gz")
    complete = ". /usr/share/bash-completion/completions/fanin && complete -p fanin"
    assert "_fanin" in host.run("bash", "-c", complete)
    folders = host.run("tshark", "-G", "folders")
    plugins = re.search(r"^Global Lua Plugins:\s+(\S+)", folders, re.MULTILINE)
    assert plugins, folders
    host.run("test", "-f", f"{plugins[1]}/fanin.lua")


def test_a_service_without_its_file_says_so_and_is_not_tried_again(host: Machine) -> None:
    host.run("systemctl", "start", "fanin@readout-9.service", check=False)
    wait_for(lambda: state(host, "fanin@readout-9.service", "ActiveState") == ["failed"], "the unit fails")
    assert state(host, "fanin@readout-9.service", "ExecMainStatus", "NRestarts") == ["2", "0"]
    assert "/etc/fanin/system.toml" in host.run("journalctl", "-u", "fanin@readout-9", "-o", "cat")
    host.run("systemctl", "reset-failed", "fanin@readout-9.service")


@pytest.mark.parametrize("unit", ["fanin@readout-1.service", "fanin-switch@none.service"])
def test_a_service_that_cannot_start_yet_is_tried_until_it_can(host: Machine, unit: str) -> None:
    # The name of its host does not resolve; the switch has no file.
    text = SYSTEM.replace('"127.0.0.1:[7100-7103]"', '"unknown.invalid:[7100-7103]"')
    host.put("/etc/fanin/system.toml", text.replace('key = "peers.key"', "insecure = true").encode())
    host.run("chmod", "644", "/etc/fanin/system.toml")
    # The same in less time.
    host.run("mkdir", "--parents", f"/run/systemd/system/{unit}.d")
    host.put(f"/run/systemd/system/{unit}.d/soon.conf", b"[Service]\nRestartSec=10ms\n")
    host.run("systemctl", "daemon-reload")
    host.run("systemctl", "start", unit, check=False)
    report = lambda: host.run("journalctl", "-u", unit, "-n", "20", both=True)  # noqa: E731
    wait_for(lambda: int(state(host, unit, "NRestarts")[0]) > 25, f"{unit} is started 25 times", report)
    host.run("systemctl", "stop", unit)
    host.run("rm", "-r", f"/run/systemd/system/{unit}.d", "/etc/fanin/system.toml")
    host.run("systemctl", "daemon-reload")


def test_a_switch_that_hangs_is_started_again(host: Machine) -> None:
    unit = "fanin-switch@pair.service"
    host.run("ip", "link", "add", "left", "type", "veth", "peer", "name", "right")
    ports = "".join(f'[[port]]\nname = "{name}"\ninterface = "{name}"\n' for name in ("left", "right"))
    host.put("/etc/fanin/pair.toml", f'[switch]\nname = "pair"\nmemory = "16 MiB"\n{ports}'.encode())
    host.run("mkdir", "--parents", f"/run/systemd/system/{unit}.d")
    host.put(f"/run/systemd/system/{unit}.d/soon.conf", b"[Service]\nWatchdogSec=1\nTimeoutAbortSec=1\n")
    host.run("systemctl", "daemon-reload")
    host.run("systemctl", "start", unit, both=True)
    # It gives more signs of life than one while it works.
    started = state(host, unit, "WatchdogTimestampMonotonic")
    wait_for(lambda: state(host, unit, "WatchdogTimestampMonotonic") != started, "a sign of life")
    assert state(host, unit, "NRestarts") == ["0"]
    host.run("systemctl", "kill", "--signal=STOP", unit)
    report = lambda: host.run("journalctl", "-u", unit, "-n", "20", both=True)  # noqa: E731
    again = lambda: state(host, unit, "NRestarts", "ActiveState") == ["1", "active"]  # noqa: E731
    wait_for(again, "the switch is started again", report)
    host.run("systemctl", "stop", unit)
    host.run("rm", "-r", f"/run/systemd/system/{unit}.d", "/etc/fanin/pair.toml")
    host.run("ip", "link", "delete", "left")
    host.run("systemctl", "daemon-reload")


def test_a_process_that_hangs_is_started_again(host: Machine) -> None:
    """Freeze a process of each role: systemd misses its signs of life, and the system goes on."""
    host.put("/etc/fanin/system.toml", SYSTEM.replace("run = 1", "run = 3").encode())
    host.put("/etc/fanin/peers.key", secrets.token_hex(32).encode())
    host.run("chmod", "644", "/etc/fanin/system.toml")
    host.run("systemd-tmpfiles", "--create", "fanin.conf")
    # The same in less time: a process gives four signs of life in it.
    host.run("mkdir", "--parents", "/run/systemd/system/fanin@.service.d")
    soon = b"[Service]\nWatchdogSec=5s\nTimeoutAbortSec=1s\nRestartSec=100ms\n"
    host.put("/run/systemd/system/fanin@.service.d/soon.conf", soon)
    host.run("systemctl", "daemon-reload")
    host.run("systemctl", "start", *UNITS, both=True)
    wait_for_more_events(host)
    for role in ("logger-0", "readout-0", "collector-0", "supervisor-0"):
        unit = f"fanin@{role}.service"
        assert state(host, unit, "Type", "NRestarts", "ActiveState") == ["notify", "0", "active"]
        host.run("systemctl", "kill", "--kill-whom=main", "--signal=STOP", unit)
        report = partial(host.run, "journalctl", "-u", unit, "-n", "20", both=True)
        again = lambda: state(host, unit, "NRestarts", "ActiveState") == ["1", "active"]  # noqa: B023, E731
        wait_for(again, f"{unit} is started again", report)
        assert "Watchdog timeout" in report()
        wait_for_more_events(host)
    # None of the others was taken for hung.
    restarts = [state(host, unit, "NRestarts")[0] for unit in UNITS]
    assert restarts == ["1" if unit.endswith("-0.service") else "0" for unit in UNITS]
    for unit in reversed(UNITS):
        host.run("systemctl", "stop", unit)
    said = host.run("fanin", "audit", "/var/lib/fanin", "/data/fanin")
    assert " + 0 lost" in said, said
    host.run("rm", "-r", "/run/systemd/system/fanin@.service.d", "/var/lib/fanin", "/data/fanin")
    host.run("rm", "/etc/fanin/system.toml", "/etc/fanin/peers.key")
    host.run("systemctl", "daemon-reload")


def test_the_units_run_a_system_through_upgrade_restarts_and_removal(host: Machine) -> None:
    host.put("/etc/fanin/system.toml", SYSTEM.encode())
    host.put("/etc/fanin/peers.key", secrets.token_hex(32).encode())
    host.run("chmod", "644", "/etc/fanin/system.toml")
    host.put("/etc/fanin/peers-2.key", b"of a change of the key")
    host.run("chmod", "644", "/etc/fanin/peers-2.key")
    host.run("systemd-tmpfiles", "--create", "fanin.conf")
    rights = host.run("stat", "--format=%a %U %G", "/etc/fanin/peers.key", "/etc/fanin/peers-2.key")
    assert rights.splitlines() == ["640 root fanin"] * 2
    # Processes that share a host need different addresses for their metrics.
    for port, role in enumerate(ROLES, 9100):
        host.put(f"/etc/fanin/{role}.env", f"FANIN_OPTIONS=--metrics 127.0.0.1:{port}\n".encode())
    host.run("systemctl", "enable", "--now", *UNITS, both=True)
    wait_for_more_events(host)
    for unit in UNITS:
        assert state(host, unit, "User", "ActiveState", "NRestarts") == ["fanin", "active", "0"], unit

    for port in range(9100, 9100 + len(ROLES)):
        assert ask(host, port, "readyz")

    # The target stops all of them in order. A boot starts them again: it reaches this target.
    host.run("systemctl", "stop", "fanin.target")
    for unit in UNITS:
        wait_for(lambda: state(host, unit, "ActiveState") == ["inactive"], f"{unit} stops")  # noqa: B023
    ended = {unit: int(state(host, unit, "InactiveEnterTimestampMonotonic")[0]) for unit in UNITS}
    *others, collector, supervisor = (ended[unit] for unit in UNITS)
    assert supervisor < collector < min(others), ended
    host.run("systemctl", "start", "multi-user.target")
    wait_for_more_events(host)
    for unit in UNITS:
        assert state(host, unit, "ActiveState") == ["active"], unit

    # An upgrade leaves running processes alone.
    processes = [state(host, unit, "MainPID") for unit in UNITS]
    install(host)
    assert [state(host, unit, "MainPID") for unit in UNITS] == processes
    # Then one process of each role is started again while the others run.
    for role in ("logger-0", "readout-0", "collector-0", "supervisor-0"):
        host.run("systemctl", "restart", f"fanin@{role}.service")
        wait_for_more_events(host)

    # Removal stops them in order; data and settings stay.
    host.run("dpkg", "--no-triggers", "--purge", "fanin", both=True)
    for unit in UNITS:
        assert state(host, unit, "ActiveState") == ["inactive"], unit
    left = host.run("find", "/etc/fanin", "/etc/systemd/system", "-name", "*fanin*").split()
    assert left == ["/etc/fanin"]
    host.run("test", "-f", "/etc/fanin/system.toml")

    # The stored events are whole, byte for byte as replayed.
    install(host)
    for path in host.run("find", "/data/fanin", "-name", "*physics*.data").split():
        said = host.run("fanin", "events", "verify", path, "--against", "km3net", "--cycle")
        assert "\n0 faults" in said, said
        assert " 0 different" in said, said


def test_the_units_run_a_standby_that_takes_over(host: Machine) -> None:
    roles = (*ROLES, "supervisor-1")
    folders = ("/var/lib/fanin/standby", "/data/fanin/standby")
    host.run("install", "--directory", "--owner=fanin", "--group=fanin", "/var/lib/fanin", *folders)
    changes = {
        '"/var/lib/fanin"': f'"{folders[0]}"',
        '"/data/fanin"': f'"{folders[1]}"',
        "run = 1": "run = 2",
        'supervisor = "127.0.0.1:7000"': 'supervisor = "127.0.0.1:7000"\nstandby = "127.0.0.1:7001"',
    }
    text = SYSTEM
    for old, new in changes.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    host.put("/etc/fanin/system.toml", text.encode())
    host.put("/etc/fanin/peers.key", secrets.token_hex(32).encode())
    host.run("chmod", "644", "/etc/fanin/system.toml")
    # It gives the key to the service.
    host.run("systemd-tmpfiles", "--create", "fanin.conf")
    ports = dict(zip(roles, range(9100, 9200), strict=False))
    for role, port in ports.items():
        host.put(f"/etc/fanin/{role}.env", f"FANIN_OPTIONS=--metrics 127.0.0.1:{port}\n".encode())

    def is_so(role: str, metric: str) -> bool:
        """Return whether a supervisor serves its metrics, and this one is 1."""
        with contextlib.suppress(AssertionError):
            lines = ask(host, ports[role], "metrics").splitlines()
            return any(re.match(rf"fanin_supervisor_{metric}{{.*}} 1$", line) for line in lines)
        return False

    def wait_until(role: str, metric: str) -> None:
        report = lambda: host.run("journalctl", "-u", "fanin@supervisor-*", "-n", "40", both=True)  # noqa: E731
        wait_for(lambda: is_so(role, metric), f"{role} {metric}", report)

    def wait_paired(leader: str) -> None:
        wait_until("supervisor-0", "paired")
        wait_until("supervisor-1", "paired")
        assert is_so(leader, "leads")

    host.run("systemctl", "start", *(f"fanin@{role}.service" for role in roles), both=True)
    wait_for_more_events(host)
    wait_paired("supervisor-0")
    # Its host dies: systemd, which would start it again, is asked to stop it before it does.
    first = "fanin@supervisor-0.service"
    host.run("sh", "-c", f"systemctl kill --signal=KILL {first}; systemctl stop {first}", both=True)
    wait_until("supervisor-1", "leads")
    wait_for_more_events(host)
    # It comes back, and follows. Then the standby is stopped in order, as for an upgrade.
    host.run("systemctl", "start", first, both=True)
    wait_paired("supervisor-1")
    # Started again at once, it might lead again.
    second = "fanin@supervisor-1.service"
    host.run("systemctl", "stop", second)
    wait_until("supervisor-0", "leads")
    wait_for_more_events(host)
    host.run("systemctl", "start", second, both=True)
    wait_paired("supervisor-0")

    for kind in ("supervisor", "collector", "logger", "readout"):
        host.run("systemctl", "stop", *(f"fanin@{role}.service" for role in roles if role.startswith(kind)))
    said = host.run("fanin", "audit", *folders)
    assert " + 0 lost" in said, said
