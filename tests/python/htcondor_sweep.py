"""Sweeps on the HTCondor that `condor_submit` reaches, loses one of two jobs, and prints what came out.

Usage: htcondor_sweep.py FOLDER
"""

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import fanin

# A job of the small pool starts within seconds; a stuck one must not hold the tests up.
JOBS_SECONDS_MAX = 60


def job() -> str:
    """Return the number of the present job, from the description that HTCondor gives it."""
    lines = Path(os.environ["_CONDOR_JOB_AD"]).read_text().splitlines()
    return next(line.split("=")[1].strip() for line in lines if line.startswith("ClusterId "))


def main(folder: Path) -> None:
    """Run the sweep of the guide, smaller, on two jobs."""
    # Neither has types.
    jobqueue: Any = import_module("dask_jobqueue")
    distributed: Any = import_module("distributed")
    cluster = jobqueue.HTCondorCluster(
        cores=1,
        memory="512 MB",
        disk="10 MB",
        interface="lo",
        local_directory=str(folder / "scratch"),
        log_directory=str(folder / "logs"),
        scheduler_options={"dashboard_address": None},
    )
    scenario = fanin.Scenario.load("incast", {"run.duration": "1 s", "run.warmup": "1 ms"})
    with cluster, distributed.Client(cluster) as client:
        cluster.scale(jobs=2)
        client.wait_for_workers(2, timeout=JOBS_SECONDS_MAX)
        jobs = sorted(set(client.run(job).values()))
        sweep = fanin.sweep(
            scenario,
            {"workload.senders": range(4, 16)},
            out=folder / "out",
            executor=client,
            timeout=30.0,
            progress=False,
        )
        times: dict[str, int] = {}
        for number, point in enumerate(sweep):
            if number == 0:
                subprocess.run(["condor_rm", jobs[0]], check=True, stdout=subprocess.DEVNULL)
            times[point.folder.name] = (point.folder / "summary.json").stat().st_mtime_ns
    print(json.dumps({"jobs": jobs, "failed": sweep.failed, "times": times}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
