"""The check of wheels finds what a Mac would miss; small libraries are linked here for it."""

import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
import wheels

TARGET = "aarch64-apple-darwin"
SOURCE = """
#![no_std]
#![allow(non_snake_case)]
unsafe extern "C" {{
    {declared}
}}
#[unsafe(no_mangle)]
pub extern "C" fn PyInit__fanin() {{
    unsafe {{ {called} }}
}}
"""
STUB = """--- !tapi-tbd
tbd-version: 4
targets: [ arm64-macos ]
install-name: {name}
exports:
  - targets: [ arm64-macos ]
    symbols: [ _CFRelease, dyld_stub_binder ]
...
"""


def printed(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def link(folder: Path, functions: tuple[str, ...], library: str) -> bytes:
    """Return a library for a Mac that calls functions; CFRelease is in a library of this name."""
    if not Path(printed("rustc", "--print", "target-libdir", "--target", TARGET)).is_dir():
        pytest.skip(f"the Rust target {TARGET} is missing: `scripts/setup.sh test` installs it")
    linker = next(Path(printed("rustc", "--print", "sysroot")).glob("lib/rustlib/*/bin/rust-lld"), None)
    if linker is None:
        pytest.skip("this Rust brings no linker for other systems")
    source, code, out = folder / "small.rs", folder / "small.o", folder / "small.so"
    declared = "".join(f"fn {name}();" for name in functions)
    called = "".join(f"{name}();" for name in functions)
    source.write_text(SOURCE.format(declared=declared, called=called))
    (folder / "stub.tbd").write_text(STUB.format(name=library))
    options = ["--edition=2024", "--crate-type=lib", "-Cpanic=abort", "-Copt-level=1", "--emit=obj"]
    printed("rustc", "--target", TARGET, *options, "-o", str(code), str(source))
    options = ["-arch", "arm64", "-platform_version", "macos", "11.0", "11.0", "-undefined", "dynamic_lookup"]
    printed(
        str(linker), "-flavor", "darwin", "-dylib", *options, "-o", str(out), str(code), f"{folder}/stub.tbd"
    )
    return out.read_bytes()


SYSTEM = "/System/Library/Frameworks/CoreFoundation.framework/Versions/A/CoreFoundation"


def test_a_library_that_needs_the_system_and_python_is_whole(tmp_path: Path) -> None:
    code = link(tmp_path, ("CFRelease", "PyErr_Clear"), SYSTEM)
    assert wheels.read_mach(code) == wheels.MachLibrary("arm64", (SYSTEM,), ("_PyErr_Clear",), True)
    assert wheels.faults_of_mach(code, "macosx_11_0_arm64") == []
    assert wheels.faults_of_mach(code, "macosx_10_12_x86_64") == ["is for arm64"]
    with pytest.raises(ValueError, match="no 64-bit Mach-O"):
        wheels.read_mach(b"\x7fELF" + bytes(60))


def test_a_library_that_was_changed_after_its_signature_is_found(tmp_path: Path) -> None:
    code = bytearray(link(tmp_path, ("CFRelease",), SYSTEM))
    # As a tool that strips it would; behind the header nothing is read but the hashes.
    code[code.index(b"_CFRelease") + 1] ^= 1
    faults = wheels.faults_of_mach(bytes(code), "macosx_11_0_arm64")
    assert faults == ["has no valid signature, so that no Mac loads it"]


def test_missing_features_of_a_mac_are_found(tmp_path: Path) -> None:
    code = link(tmp_path, ("CFRelease", "CFAbsent"), "/opt/homebrew/lib/libz.dylib")
    faults = wheels.faults_of_mach(code, "macosx_11_0_arm64")
    assert faults == ["needs /opt/homebrew/lib/libz.dylib", "expects _CFAbsent of its process"]


def test_a_wheel_holds_the_typed_package_under_its_tags(tmp_path: Path) -> None:
    path = tmp_path / "fanin-0.1.0-cp311-abi3-manylinux_2_17_x86_64.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name in (*wheels.NEEDED, "fanin-0.1.0.dist-info/licenses/LICENSE"):
            wheel.writestr(name, "")
    assert wheels.faults_of_wheel(path) == []
    other = shutil.copy(path, tmp_path / "fanin-0.1.0-cp312-cp312-manylinux_2_17_x86_64.whl")
    assert wheels.faults_of_wheel(Path(other)) == ["is for cp312-cp312, not cp311-abi3"]
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("fanin/__init__.py", "")
    lacks = [f"lacks {name}" for name in ("fanin/_fanin.abi3.so", "fanin/_fanin.pyi", "fanin/py.typed")]
    assert wheels.faults_of_wheel(path) == [*lacks, "lacks its licence"]
