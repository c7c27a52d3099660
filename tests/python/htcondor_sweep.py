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

import batch


def job() -> str:
    """Return the number of the present job, from the description that HTCondor gives it."""
    lines = Path(os.environ["_CONDOR_JOB_AD"]).read_text().splitlines()
    return next(line.split("=")[1].strip() for line in lines if line.startswith("ClusterId "))


def remove(number: str) -> None:
    """Remove a job."""
    subprocess.run(["condor_rm", number], check=True, stdout=subprocess.DEVNULL)


def main(folder: Path) -> None:
    """Run a sweep on two jobs, and print what became of it."""
    # Neither has types.
    jobqueue: Any = import_module("dask_jobqueue")
    distributed: Any = import_module("distributed")
    cluster = jobqueue.HTCondorCluster(disk="10 MB", **batch.options(folder))
    with cluster, distributed.Client(cluster) as client:
        outcome = batch.lose_a_job(cluster, client, job, remove, folder / "out")
    print(json.dumps(outcome))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
