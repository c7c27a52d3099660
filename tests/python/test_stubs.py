"""The stubs describe the compiled half of the package."""

import subprocess
import sys
from pathlib import Path


def test_stubs_describe_the_extension_module(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mypy.stubtest", "fanin._fanin", "--ignore-disjoint-bases"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
