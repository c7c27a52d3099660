"""Sweeps on a real Slurm of one node, which scripts/slurm.sh sets up and removes."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import batch
import polars
import pytest
from batch import JOBS_SECONDS_MAX, written

import fanin

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "slurm.sh"
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scancel")


@pytest.fixture(scope="module")
def slurm() -> Iterator[None]:
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    missing = [name for name in PROGRAMS if shutil.which(name, path=path) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} missing: this machine has no Slurm")
    # It stays until its input ends, also if this process is killed.
    command = [str(SCRIPT), "sh", "-c", 'echo "$SLURM_CONF"; cat']
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        settings = process.stdout.readline().strip()
        assert settings, "scripts/slurm.sh has said why"
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SLURM_CONF", settings)
            yield
        process.stdin.close()
        assert process.wait(JOBS_SECONDS_MAX) == 0
    assert not Path(settings).parent.exists(), "nothing stays behind"


@pytest.fixture
def scenario() -> fanin.Scenario:
    return fanin.Scenario.load("incast", {"run.duration": "60 ms", "run.warmup": "1 ms"})


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("slurm")
def test_jobs_of_dask_jobqueue_take_points_and_one_may_be_cancelled(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    jobqueue = pytest.importorskip("dask_jobqueue")
    cluster: Any = jobqueue.SLURMCluster(walltime="00:05:00", **batch.options(tmp_path))
    with cluster, distributed.Client(cluster) as client:
        outcome = batch.lose_a_job(
            cluster,
            client,
            lambda: os.environ["SLURM_JOB_ID"],
            lambda job: subprocess.run(["scancel", job], check=True),
            tmp_path / "out",
        )
    batch.assert_each_ran_once(outcome, tmp_path / "out")


@pytest.mark.usefixtures("slurm")
def test_jobs_of_submitit_take_points(scenario: fanin.Scenario, tmp_path: Path) -> None:
    submitit = pytest.importorskip("submitit")
    executor = submitit.SlurmExecutor(folder=tmp_path / "jobs")
    executor.update_parameters(time=10, mem="256MB", cpus_per_task=1)
    sweep = fanin.sweep(
        scenario,
        {"workload.senders": [4, 8]},
        out=tmp_path / "out",
        executor=executor,
        tasks=2,
        timeout=60.0,
        progress=False,
    )
    assert len(sweep.run()) == len(written(tmp_path / "out")) == 2


def submit(script: Path, tmp_path: Path) -> None:
    """Submit an array of two small jobs, and wait until both have ended well."""
    options = ["--array=1-2", "--cpus-per-task=1", f"--output={tmp_path}/job-%a.log"]
    path = f"{Path(os.environ['FANIN_BIN']).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sbatch", "--wait", *options, str(script)],
        env=os.environ | {"PATH": path},
        timeout=JOBS_SECONDS_MAX,
        capture_output=True,
        text=True,
        check=False,
    )
    logs = "".join(log.read_text() for log in sorted(tmp_path.glob("job-*.log")))
    assert done.returncode == 0, done.stderr + logs


@pytest.mark.usefixtures("slurm")
def test_the_array_of_the_guide_shares_a_sweep(tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "howto" / "slurm.md").read_text()
    recipe, collect, *_ = re.findall(r"^```bash\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    out = tmp_path / "shared"

    def small(text: str) -> str:
        changes = {
            "thesis-a-1000hz": 'incast --set "run.duration=60 ms"',
            "shaping.credits=60..1200:60": "workload.senders=4,8",
            "/shared/credits": str(out),
        }
        for old, new in changes.items():
            assert old in text, f"the guide has no {old}"
            text = text.replace(old, new)
        return text

    script = tmp_path / "job.sh"
    script.write_text(small(recipe))
    submit(script, tmp_path)
    after = written(out)
    assert len(after) == 10, "two values, five seeds"
    # The array again, as after a job that was killed: what is there stays.
    script.write_text(small(recipe).replace("--quiet", "--quiet --resume"))
    lost = sorted(after)[0]
    shutil.rmtree(out / lost)
    submit(script, tmp_path)
    again = written(out)
    assert again.keys() == after.keys()
    assert {name for name in after if again[name] != after[name]} == {lost}
    binary = os.environ["FANIN_BIN"]
    subprocess.run(["bash", "-ec", small(collect).replace("fanin", binary, 1)], check=True)
    assert written(out) == again
    assert len(polars.read_parquet(out / "sweep.parquet")) == 10
