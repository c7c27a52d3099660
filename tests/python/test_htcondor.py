"""Sweeps on a real HTCondor of one node, which scripts/htcondor.sh sets up and removes."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import polars
import pytest
from batch import assert_each_ran_once, written

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "htcondor.sh"
FETCHED = ROOT / ".venv" / "htcondor"
SWEEP = Path(__file__).with_name("htcondor_sweep.py")
# The pool starts and ends within ten seconds; a stuck job must not hold the tests up.
SECONDS_MAX = 150


def on_htcondor(*command: str) -> str:
    """Run a command on a pool of its own, and return what it printed."""
    environment = dict(os.environ)
    if shutil.which("condor_master", path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None:
        if not (FETCHED / "path").is_file():
            pytest.skip("HTCondor is missing: `scripts/setup.sh test` fetches it")
        environment["FANIN_HTCONDOR"] = str(FETCHED)
    done = subprocess.run(
        [str(SCRIPT), *command],
        env=environment,
        timeout=SECONDS_MAX,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_jobs_of_dask_jobqueue_take_points_and_one_may_be_removed(tmp_path: Path) -> None:
    pytest.importorskip("dask_jobqueue")
    outcome = json.loads(on_htcondor(sys.executable, str(SWEEP), str(tmp_path)).splitlines()[-1])
    assert_each_ran_once(outcome, tmp_path / "out")
    logs = "".join(log.read_text() for log in (tmp_path / "logs").glob("*.log"))
    assert logs.count("Job submitted from host") >= 2
    assert "via condor_rm" in logs


def test_the_jobs_of_the_guide_share_a_sweep(tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "howto" / "htcondor.md").read_text()
    recipe, *_ = re.findall(r"^```text\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    out = tmp_path / "shared"
    changes = {
        "thesis-a-1000hz": "incast --set run.duration=60ms",
        "shaping.credits=60..1200:60": "workload.senders=4,8",
        "/shared/credits": str(out),
        "/usr/bin/fanin": os.environ["FANIN_BIN"],
        "jobs = 20": "jobs = 2",
        "cpus = 8": "cpus = 1",
        "request_memory = 8 GB": "request_memory = 256 MB",
    }
    for old, new in changes.items():
        assert old in recipe, f"the guide has no {old}"
        recipe = recipe.replace(old, new)
    (tmp_path / "sweep.submit").write_text(recipe)
    wait = f"cd {tmp_path} && condor_submit sweep.submit && condor_wait -wait 60 sweep.log"
    on_htcondor("sh", "-ec", wait)
    log = (tmp_path / "sweep.log").read_text()
    assert log.count("Normal termination (return value 0)") == 2, log
    after = written(out)
    assert len(after) == 10, "two values, five seeds"
    collect = ["--set", "run.duration=60ms", "--sweep", "workload.senders=4,8", "--repeat", "5", "--resume"]
    command = [os.environ["FANIN_BIN"], "sim", "incast", *collect, "--out", str(out)]
    subprocess.run(command, check=True, capture_output=True)
    assert written(out) == after
    assert len(polars.read_parquet(out / "sweep.parquet")) == 10
