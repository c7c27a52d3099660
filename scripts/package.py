"""Makes the Debian package and the container image of a `fanin` program that is built.

    scripts/package.py deb target/release/fanin     target/package/fanin_VERSION_ARCHITECTURE.deb
    scripts/package.py image target/release/fanin   target/package/fanin-VERSION-ARCHITECTURE.oci.tar

The same sources, program and SOURCE_DATE_EPOCH give the same bytes; without the variable, the time is that of
the last commit. The image holds the program, the shared libraries that it needs, and a user.
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import re
import struct
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"
# Debian's names of architectures, which are those of images too, and of their folders, by the machine of ELF.
ARCHITECTURES = {
    62: ("amd64", "x86_64-linux-gnu"),
    183: ("arm64", "aarch64-linux-gnu"),
    243: ("riscv64", "riscv64-linux-gnu"),
}
# The image's user, as in deploy/kubernetes.
USER = 10001
# A system's file chooses its ports; these are those of the examples.
PORTS = {7000: "supervisor", 7100: "readout", 7200: "logger", 9100: "metrics"}
# Folders that processes in the image write to.
STATE = ("var/lib/fanin", "data/fanin")
# Levels of gzip and xz: the smallest file, or the quickest.
LEVEL, QUICK_LEVEL = 9, 1


class PackageError(Exception):
    """A reason why nothing can be made, for the user."""


@dataclass(frozen=True)
class Program:
    """The program to pack, and all that the names and times of packages follow from."""

    path: Path
    version: str
    architecture: str
    triplet: str
    time: int
    level: int

    @property
    def date(self) -> datetime:
        """Return the time of packages in UTC."""
        return datetime.fromtimestamp(self.time, UTC)


def output(*command: str | Path, cwd: Path = ROOT) -> str:
    """Return what a command prints."""
    try:
        run = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    except OSError as error:
        raise PackageError(
            f"{command[0]}: {error.strerror}; `scripts/setup.sh package` installs it"
        ) from None
    if run.returncode != 0:
        text = " ".join(map(str, command))
        raise PackageError(f"`{text}` ended with exit code {run.returncode}:\n{run.stderr}")
    return run.stdout


def architecture(path: Path) -> tuple[str, str]:
    """Return the architecture of an ELF file, and the folder of its libraries."""
    try:
        with path.open("rb") as file:
            head = file.read(20)
    except OSError as error:
        raise PackageError(f"{path}: {error.strerror}; build it, or name another program") from None
    if len(head) < 20 or head[:6] != b"\x7fELF\x02\x01":
        raise PackageError(f"{path}: not a program of 64 bits, little-endian (ELF)")
    machine = struct.unpack_from("<H", head, 18)[0]
    if machine not in ARCHITECTURES:
        known = ", ".join(name for name, _ in ARCHITECTURES.values())
        raise PackageError(f"{path}: its machine has the number {machine} in ELF; known are those of {known}")
    return ARCHITECTURES[machine]


def source_time() -> int:
    """Return the time that all files of packages get: SOURCE_DATE_EPOCH, or that of the last commit."""
    text = os.environ.get("SOURCE_DATE_EPOCH")
    try:
        return int(text if text is not None else output("git", "log", "-1", "--format=%ct"))
    except ValueError:
        raise PackageError(f"SOURCE_DATE_EPOCH: `{text}` is no number of seconds since 1970") from None
    except PackageError:
        raise PackageError("no commit to take the time from: set SOURCE_DATE_EPOCH") from None


def program(path: Path, level: int) -> Program:
    """Return the program at this path, which has to be the workspace's."""
    name, triplet = architecture(path)
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    said = output(path.resolve(), "--version").strip()
    if said.split()[:2] != ["fanin", version]:
        raise PackageError(f"{path}: it is `{said}`, and the workspace is {version}: build it again")
    return Program(path.resolve(), version, name, triplet, source_time(), level)


def write(path: Path, text: str | bytes, mode: int = 0o644) -> None:
    """Write a file with its folders, whatever the umask."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    path.chmod(mode)


def compressed(text: str | bytes) -> bytes:
    """Return a file of gzip without a time or a name."""
    return gzip.compress(text.encode() if isinstance(text, str) else text, 9, mtime=0)


def crates() -> str:
    """Return a line for each crate that the program contains, with its licence."""
    command = ("cargo", "tree", "--locked", "-p", "fanin-cli", "--features", "bpf", "--target", "all")
    lines = output(*command, "--edges", "normal", "--prefix", "none", "--format", "{p} | {l}").splitlines()
    # Those of the workspace have their folder, and repeated ones a mark, behind their version.
    third = {re.sub(r" \((?:proc-macro|\*)\)", "", line) for line in lines if not line.startswith("fanin-")}
    return "".join(f"{line}\n" for line in sorted(third))


def install_program(root: Path, it: Program) -> None:
    """Put the program, without what only a debugger reads, into a tree."""
    target = root / "usr/bin/fanin"
    target.parent.mkdir(parents=True)
    output("strip", "--remove-section=.comment", "--remove-section=.note", "-o", target, it.path)
    target.chmod(0o755)


def install_documents(root: Path, it: Program) -> None:
    """Put licences, changes and examples into a tree."""
    folder = root / "usr/share/doc/fanin"
    write(folder / "copyright", (DEPLOY / "debian/copyright").read_bytes())
    write(folder / "crates.txt.gz", compressed(crates()))
    write(folder / "CHANGELOG.md.gz", compressed((ROOT / "CHANGELOG.md").read_bytes()))
    examples = {
        "system.toml": "systemd/system.toml",
        "prometheus/prometheus.yml": "prometheus/prometheus.yml",
        "prometheus/fanin-rules.yml": "prometheus/fanin-rules.yml",
        "prometheus/fanin-switch-rules.yml": "prometheus/fanin-switch-rules.yml",
        "grafana/fanin.json": "grafana/fanin.json",
        "grafana/fanin-switch.json": "switch/grafana-dashboard.json",
        "kubernetes/fanin.yaml": "kubernetes/fanin.yaml",
        "kubernetes/kustomization.yaml": "kubernetes/kustomization.yaml",
    }
    for name, source in examples.items():
        write(folder / "examples" / name, (DEPLOY / source).read_bytes())
    write(folder / "examples/switch.toml", output(it.path, "switch", "--example"))


def install_services(root: Path, it: Program) -> None:
    """Put units, manual pages, completions and the dissector into a tree."""
    units = root / "usr/lib/systemd/system"
    services = ("systemd/fanin@.service", "systemd/fanin-drain.service", "systemd/fanin.target")
    for name in (*services, "switch/fanin-switch@.service"):
        write(units / Path(name).name, (DEPLOY / name).read_bytes())
    write(root / "usr/lib/sysusers.d/fanin.conf", (DEPLOY / "systemd/sysusers.conf").read_bytes())
    write(root / "usr/lib/tmpfiles.d/fanin.conf", (DEPLOY / "systemd/tmpfiles.conf").read_bytes())
    dissector = root / "usr/lib" / it.triplet / "wireshark/plugins/fanin.lua"
    write(dissector, (DEPLOY / "wireshark/fanin.lua").read_bytes())
    completions = {
        "bash": "bash-completion/completions/fanin",
        "zsh": "zsh/vendor-completions/_fanin",
        "fish": "fish/vendor_completions.d/fanin.fish",
    }
    for shell, name in completions.items():
        write(root / "usr/share" / name, output(it.path, "completions", shell))
    with tempfile.TemporaryDirectory() as folder:
        output(it.path, "man", folder)
        for page in sorted(Path(folder).iterdir()):
            write(root / "usr/share/man/man1" / f"{page.name}.gz", compressed(page.read_bytes()))


def settle(root: Path, it: Program) -> None:
    """Give every folder its mode, and everything the time of the sources."""
    for path in sorted(root.rglob("*")):
        if path.is_dir():
            path.chmod(0o755)
        os.utime(path, (it.time, it.time))
    root.chmod(0o755)
    os.utime(root, (it.time, it.time))


def files(root: Path) -> list[Path]:
    """Return the files of a tree in order."""
    return sorted(path for path in root.rglob("*") if path.is_file())


def shared_libraries(binary: Path) -> str:
    """Return the packages of the shared libraries that a program needs, with their least versions."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "debian/control", "Source: fanin\n\nPackage: fanin\nArchitecture: any\n")
        line = output("dpkg-shlibdeps", "-O", f"-e{binary}", cwd=Path(folder))
    return line.strip().removeprefix("shlibs:Depends=")


def make_deb(it: Program, out: Path) -> Path:
    """Make the Debian package, and return its path."""
    target = out / f"fanin_{it.version}_{it.architecture}.deb"
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "root"
        install_program(root, it)
        install_documents(root, it)
        install_services(root, it)
        (root / "etc/fanin").mkdir(parents=True)
        changes = (
            f"fanin ({it.version}) unstable; urgency=medium\n\n  * CHANGELOG.md.gz says what changed.\n\n"
            f" -- The Fanin developers <fanin@fanin.invalid>  {it.date:%a, %d %b %Y %H:%M:%S +0000}\n"
        )
        write(root / "usr/share/doc/fanin/changelog.gz", compressed(changes))

        sums = (
            f"{hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()}  {path.relative_to(root)}\n"
            for path in files(root)
        )
        write(root / "DEBIAN/md5sums", "".join(sums))
        control = (DEPLOY / "debian/control").read_text()
        kibibytes = sum(-(-path.stat().st_size // 1024) for path in files(root))
        libraries = shared_libraries(root / "usr/bin/fanin")
        fields = {"version": it.version, "architecture": it.architecture}
        control = control.format(**fields, kibibytes=kibibytes, libraries=libraries)
        write(root / "DEBIAN/control", control)
        for name in ("postinst", "prerm", "postrm"):
            write(root / "DEBIAN" / name, (DEPLOY / "debian" / name).read_bytes(), 0o755)
        settle(root, it)
        out.mkdir(parents=True, exist_ok=True)
        # One thread: how xz divides its work shows in the file.
        method = (
            ("-Zgzip", "-z1") if it.level == QUICK_LEVEL else ("-Zxz", f"-z{it.level}", "--threads-max=1")
        )
        os.environ["SOURCE_DATE_EPOCH"] = str(it.time)
        output("dpkg-deb", "--build", "--root-owner-group", *method, root, target)
    return target


def loaded(binary: Path) -> Iterator[Path]:
    """Yield the path of each shared library that a program loads, and of its loader."""
    for line in output("ldd", binary).splitlines():
        if "=> not found" in line:
            raise PackageError(f"{binary}: this machine lacks a library of it: {line.strip()}")
        if match := re.search(r"(?:=> )?(/\S+) \(0x", line):
            yield Path(match[1])


def install_base(root: Path) -> None:
    """Put the libraries of the program, their licences, a user, and its folders into a tree."""
    packages = set()
    for path in loaded(root / "usr/bin/fanin"):
        write(root / path.relative_to("/"), path.read_bytes(), 0o755)
        # Where /lib is a link to /usr/lib, dpkg may know a file by either name.
        names = dict.fromkeys((str(path), str(path.resolve()), str(path.resolve()).removeprefix("/usr")))
        owners = subprocess.run(["dpkg-query", "-S", *names], capture_output=True, text=True, check=False)
        packages |= {line.split(": ")[0] for line in owners.stdout.splitlines()}
    for package in sorted(packages):
        name = package.split(":")[0]
        write(root / f"usr/share/doc/{name}/copyright", Path(f"/usr/share/doc/{name}/copyright").read_bytes())
        # Scanners for known faults of libraries look here.
        write(root / f"var/lib/dpkg/status.d/{name}", output("dpkg-query", "--status", package))
    user = f"{USER}:{USER}:Fanin:/var/lib/fanin:/usr/sbin/nologin"
    write(root / "etc/passwd", f"root:x:0:0:root:/root:/usr/sbin/nologin\nfanin:x:{user}\n")
    write(root / "etc/group", f"root:x:0:\nfanin:x:{USER}:\n")
    write(root / "etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n")
    for name in ("etc/fanin", "tmp", "proc", "sys", "dev", "run", *STATE):
        (root / name).mkdir(parents=True, exist_ok=True)


def layer(root: Path, it: Program) -> bytes:
    """Return a tree as a layer: a tar without anything of this machine."""

    def plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
        info.uid = info.gid = USER if info.name in STATE else 0
        info.uname = info.gname = ""
        info.mode = 0o1777 if info.name == "tmp" else info.mode & 0o777
        return info

    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(root.rglob("*")):
            tar.add(path, str(path.relative_to(root)), recursive=False, filter=plain)
    return data.getvalue()


def image_config(it: Program, layer_digest: str) -> dict[str, object]:
    """Return the configuration of the image: how a container of it starts."""
    return {
        "architecture": it.architecture,
        "os": "linux",
        "created": f"{it.date:%Y-%m-%dT%H:%M:%SZ}",
        "config": {
            "User": f"{USER}:{USER}",
            "Env": ["PATH=/usr/bin"],
            "Entrypoint": ["/usr/bin/fanin"],
            "Cmd": ["--help"],
            "WorkingDir": "/var/lib/fanin",
            "ExposedPorts": {f"{port}/tcp": {} for port in PORTS},
            "Volumes": {f"/{name}": {} for name in STATE},
            "StopSignal": "SIGTERM",
            "Labels": {
                "org.opencontainers.image.title": "fanin",
                "org.opencontainers.image.description": "Predicts, measures and avoids TCP incast",
                "org.opencontainers.image.version": it.version,
                "org.opencontainers.image.licenses": "Apache-2.0",
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [layer_digest]},
        "history": [{"created": f"{it.date:%Y-%m-%dT%H:%M:%SZ}", "created_by": "scripts/package.py"}],
    }


def make_image(it: Program, out: Path) -> Path:
    """Make the image as an archive of the OCI's layout, and return its path."""
    blobs: dict[str, bytes] = {}

    def keep(data: bytes, kind: str) -> dict[str, object]:
        digest = hashlib.sha256(data).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = data
        media = f"application/vnd.oci.image.{kind}"
        return {"mediaType": media, "digest": f"sha256:{digest}", "size": len(data)}

    def document(value: object) -> bytes:
        return json.dumps(value, indent=1).encode() + b"\n"

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "root"
        install_program(root, it)
        install_documents(root, it)
        install_base(root)
        settle(root, it)
        tree = layer(root, it)
    layers = [keep(gzip.compress(tree, it.level, mtime=0), "layer.v1.tar+gzip")]
    settings = image_config(it, f"sha256:{hashlib.sha256(tree).hexdigest()}")
    config = keep(document(settings), "config.v1+json")
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json"}
    entry = keep(document(manifest | {"config": config, "layers": layers}), "manifest.v1+json")
    entry["platform"] = {"architecture": it.architecture, "os": "linux"}
    # The first names the image within its archive, the second names it for Docker and containerd.
    entry["annotations"] = {
        "org.opencontainers.image.ref.name": it.version,
        "io.containerd.image.name": f"docker.io/library/fanin:{it.version}",
    }
    kind = "application/vnd.oci.image.index.v1+json"
    index = {"schemaVersion": 2, "mediaType": kind, "manifests": [entry]}
    members = {"oci-layout": document({"imageLayoutVersion": "1.0.0"}), "index.json": document(index)} | blobs

    out.mkdir(parents=True, exist_ok=True)
    target = out / f"fanin-{it.version}-{it.architecture}.oci.tar"
    with tarfile.open(target, "w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime, info.mode = len(data), it.time, 0o644
            tar.addfile(info, io.BytesIO(data))
    return target


def main() -> int:
    """Make what was asked for, and print its path and size."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=("deb", "image"))
    parser.add_argument("program", type=Path, help="a `fanin` that is built")
    parser.add_argument("--out", type=Path, default=ROOT / "target/package", help="the folder of the result")
    parser.add_argument("--quick", action="store_true", help="compress less, as tests do")
    options = parser.parse_args()
    try:
        it = program(options.program, QUICK_LEVEL if options.quick else LEVEL)
        target = {"deb": make_deb, "image": make_image}[options.kind](it, options.out.resolve())
    except PackageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{target} ({target.stat().st_size / 1e6:.1f} MB)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
