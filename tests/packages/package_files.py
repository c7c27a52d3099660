"""A small system, and the making of packages for tests."""

import os
import subprocess
import sys
from pathlib import Path

# Five processes on one host: their addresses differ by port alone.
SYSTEM = """
scenario = "replay"
set = ["readout.hosts=4", "collectors.hosts_per_rack=1", "collectors.units_per_host=2", "logger.hosts=1",
       "supervisor.rate=50 Hz", "live.drain=2 s"]
folder = "/var/lib/fanin"
data = "/data/fanin"
run = 1
key = "peers.key"

[hosts]
supervisor = "127.0.0.1:7000"
readouts = ["127.0.0.1:[7100-7103]"]
collectors = ["127.0.0.1"]
loggers = ["127.0.0.1:7200"]
"""


def make(kind: str, out: Path) -> Path:
    """Pack the program that `cargo test` built; the time is given, so that it does not hang on a commit."""
    root = Path(__file__).resolve().parents[2]
    program = str(Path(os.environ.get("FANIN_BIN", root / "target" / "debug" / "fanin")).resolve())
    command = [sys.executable, str(root / "scripts" / "package.py"), kind, program]
    # A folder's name counts from where the script is called.
    command += ["--out", ".", "--quick"]
    environment = os.environ | {"SOURCE_DATE_EPOCH": "1700000000"}
    run = subprocess.run(command, cwd=out, capture_output=True, text=True, env=environment, check=False)
    assert run.returncode == 0, run.stderr
    return Path(run.stdout.split(" (")[0])
