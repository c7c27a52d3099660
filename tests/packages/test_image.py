"""The container image: complete by its digests, the same each time, and a system of its containers."""

import hashlib
import io
import json
import os
import secrets
import shutil
import signal
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from machine import WAIT_SECONDS_MAX, wait_for
from package_files import SYSTEM, make

# In the order in which a system stops.
ROLES = ("supervisor-0", "collector-0", "logger-0", "readout-0", "readout-1", "readout-2", "readout-3")


def blob(archive: tarfile.TarFile, entry: dict[str, Any]) -> bytes:
    """Return what a descriptor describes, which has to have its size and digest."""
    method, digest = entry["digest"].split(":")
    file = archive.extractfile(f"blobs/{method}/{digest}")
    assert file is not None
    data = file.read()
    assert (method, len(data)) == ("sha256", entry["size"])
    assert hashlib.sha256(data).hexdigest() == digest
    return data


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the archive with the image."""
    return make("image", tmp_path_factory.mktemp("image"))


@pytest.fixture(scope="module")
def unpacked(image: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Return the files of the image, and how a container of it starts."""
    root = tmp_path_factory.mktemp("rootfs")
    root.chmod(0o755)
    with tarfile.open(image) as archive:
        layout, index = (archive.extractfile(name) for name in ("oci-layout", "index.json"))
        assert layout is not None
        assert index is not None
        assert json.load(layout) == {"imageLayoutVersion": "1.0.0"}
        (entry,) = json.load(index)["manifests"]
        manifest = json.loads(blob(archive, entry))
        config = json.loads(blob(archive, manifest["config"]))
        (layer,) = manifest["layers"]
        data = blob(archive, layer)
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as tree:
        assert not [member.name for member in tree if member.mode & 0o6002 and member.name != "tmp"]
        tree.extractall(root, filter="tar", numeric_owner=True)
    assert entry["platform"] == {"architecture": config["architecture"], "os": config["os"]}
    return root, config


def test_the_image_is_the_same_each_time(image: Path, tmp_path: Path) -> None:
    mask = os.umask(0o077)
    try:
        again = make("image", tmp_path)
    finally:
        os.umask(mask)
    assert image.read_bytes() == again.read_bytes()


def test_the_image_runs_as_a_user_that_owns_its_folders(unpacked: tuple[Path, dict[str, Any]]) -> None:
    root, config = unpacked
    user, group = map(int, config["config"]["User"].split(":"))
    assert user > 0
    assert f":{user}:{group}:" in (root / "etc/passwd").read_text()
    for name in config["config"]["Volumes"]:
        if os.geteuid() == 0:
            assert (root / name.lstrip("/")).stat().st_uid == user, name
    assert (root / config["config"]["WorkingDir"].lstrip("/")).is_dir()


class Containers:
    """Containers of the image in a network namespace of their own, run by crun."""

    def __init__(self, root: Path, config: dict[str, Any], folder: Path, stack: ExitStack) -> None:
        """Make the folders that all containers share, and their network."""
        self.root, self.config, self.folder, self.stack = root, config["config"], folder, stack
        self.user, self.group = map(int, self.config["User"].split(":"))
        self.network = f"fanin-test-{os.getpid()}"
        subprocess.run(["ip", "netns", "add", self.network], check=True)
        stack.callback(subprocess.run, ["ip", "netns", "delete", self.network], check=False)
        subprocess.run(["ip", "-n", self.network, "link", "set", "lo", "up"], check=True)
        self.mounts = {"/etc/fanin": "etc", "/var/lib/fanin": "state", "/data/fanin": "data"}
        for name in self.mounts.values():
            (folder / name).mkdir()
            os.chown(folder / name, self.user, self.group)

    def start(self, name: str, *arguments: str) -> subprocess.Popen[str]:
        """Start a container: the image's entry point with arguments, its files read-only."""
        bundle = self.folder / name
        bundle.mkdir()
        subprocess.run(["crun", "spec"], cwd=bundle, check=True)
        spec = json.loads((bundle / "config.json").read_text())
        spec["root"] = {"path": str(self.root), "readonly": True}
        user = {"uid": self.user, "gid": self.group}
        spec["process"] |= {
            "terminal": False,
            "user": user,
            "args": [*self.config["Entrypoint"], *(arguments or self.config["Cmd"])],
            "env": self.config["Env"],
            "cwd": self.config["WorkingDir"],
            "capabilities": {},
        }
        spec["mounts"] = [mount for mount in spec["mounts"] if mount["type"] != "cgroup"]
        for target, source in self.mounts.items():
            options = ["bind", "ro"] if target == "/etc/fanin" else ["bind", "rw"]
            source = str(self.folder / source)
            spec["mounts"].append(
                {"destination": target, "source": source, "type": "bind", "options": options}
            )
        for namespace in spec["linux"]["namespaces"]:
            if namespace["type"] == "network":
                namespace["path"] = f"/run/netns/{self.network}"
        (bundle / "config.json").write_text(json.dumps(spec))
        # crun refuses a machine with both versions of control groups, so it sees the second only.
        see = 'mount -t cgroup2 cgroup2 /sys/fs/cgroup && exec "$@"'
        unshare = ["unshare", "--mount", "--propagation", "private", "sh", "-c", see, "sh"]
        crun = [*unshare, "crun", f"--root={self.folder / 'crun'}", "--cgroup-manager=disabled"]
        process = subprocess.Popen(
            [*crun, "run", f"--bundle={bundle}", f"{self.network}-{name}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
        )
        delete = [*crun, "delete", "--force", f"{self.network}-{name}"]
        self.stack.callback(process.wait)
        self.stack.callback(subprocess.run, delete, check=False, capture_output=True)
        return process

    def run(self, name: str, *arguments: str) -> str:
        """Run a container to its end, and return what it prints."""
        process = self.start(name, *arguments)
        said, _ = process.communicate(timeout=WAIT_SECONDS_MAX)
        assert process.returncode == 0, said
        return said


@pytest.fixture
def containers(unpacked: tuple[Path, dict[str, Any]], tmp_path: Path) -> Iterator[Containers]:
    """Return a place for containers of the image."""
    if os.geteuid() != 0:
        pytest.skip("needs root, for containers")
    if shutil.which("crun") is None:
        pytest.skip("crun is missing: `scripts/setup.sh test` installs it")
    with ExitStack() as stack:
        yield Containers(*unpacked, tmp_path, stack)


def test_containers_of_the_image_run_a_system(containers: Containers) -> None:
    assert "Usage: fanin" in containers.run("help")
    files = {"system.toml": SYSTEM, "peers.key": secrets.token_hex(32)}
    for name, text in files.items():
        path = containers.folder / "etc" / name
        path.write_text(text)
        os.chown(path, containers.user, containers.group)
        path.chmod(0o600)
    running = {}
    for role in ROLES:
        name, index = role.split("-")
        running[role] = containers.start(role, "node", name, "/etc/fanin/system.toml", "--index", index)
    data = containers.folder / "data"

    def stored() -> int:
        assert all(process.poll() is None for process in running.values()), "a container ended"
        return sum(path.stat().st_size for path in data.iterdir())

    wait_for(lambda: stored() > 3_000_000, "events are stored")
    for role, process in running.items():
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=WAIT_SECONDS_MAX)
        assert process.returncode == 0, f"{role}: {said}"
    (file,) = data.iterdir()
    said = containers.run(
        "verify", "events", "verify", f"/data/fanin/{file.name}", "--against", "km3net", "--cycle"
    )
    assert "\n0 faults" in said, said
    assert " 0 different" in said, said
    assert "atlas: 0 events" not in said, said
