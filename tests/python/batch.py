"""A sweep on two jobs of dask-jobqueue that loses one of them, for the tests of batch systems."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import fanin

# A job of a small cluster starts within seconds; a stuck one must not hold the tests up.
JOBS_SECONDS_MAX = 60
POINTS = 12


def options(folder: Path) -> dict[str, Any]:
    """Return the options of a cluster of dask-jobqueue that keeps its files in a folder."""
    return {
        "cores": 1,
        "memory": "512 MB",
        "interface": "lo",
        "local_directory": str(folder / "scratch"),
        "log_directory": str(folder / "logs"),
        "scheduler_options": {"dashboard_address": None},
    }


def lose_a_job(
    cluster: Any, client: Any, job: Callable[[], str], remove: Callable[[str], object], out: Path
) -> dict[str, Any]:
    """Sweep on two jobs, and remove one of them after the first point.

    `job` returns the number of the job that it runs in. Returns the numbers of the jobs, the points that
    failed, and the time at which each point was stored first.
    """
    cluster.scale(jobs=2)
    client.wait_for_workers(2, timeout=JOBS_SECONDS_MAX)
    jobs = sorted(set(client.run(job).values()))
    scenario = fanin.Scenario.load("incast", {"run.duration": "1 s", "run.warmup": "1 ms"})
    over = {"workload.senders": range(4, 4 + POINTS)}
    sweep = fanin.sweep(scenario, over, out=out, executor=client, timeout=30.0, progress=False)
    times: dict[str, int] = {}
    for number, point in enumerate(sweep):
        if number == 0:
            remove(jobs[0])
        times[point.folder.name] = (point.folder / "summary.json").stat().st_mtime_ns
    return {"jobs": jobs, "failed": sweep.failed, "times": times}


def assert_each_ran_once(outcome: dict[str, Any], out: Path) -> None:
    """Check that all points have results, and none was stored again after the job was lost."""
    assert len(outcome["jobs"]) == 2, "each worker is a job of its own"
    assert outcome["failed"] == {}
    assert len(outcome["times"]) == POINTS
    assert written(out) == outcome["times"], "no point ran twice"


def written(folder: Path) -> dict[str, int]:
    """Return the time at which each point was stored."""
    return {path.parent.name: path.stat().st_mtime_ns for path in folder.glob("[!.]*/summary.json")}
