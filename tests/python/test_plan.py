"""Plans in Python are those of the command."""

import json
import os
import subprocess
from typing import Any

import pytest

import fanin


def test_a_plan_is_the_one_that_the_command_prints() -> None:
    command = [
        os.environ["FANIN_BIN"],
        "plan",
        "thesis-b-500hz",
        "--set",
        "shaping.credits=480",
        "--json",
        "-",
    ]
    printed = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    printed.pop("commit", None)
    assert fanin.Scenario.load("thesis-b-500hz", {"shaping.credits": 480}).plan() == printed


def test_options_reach_the_planner() -> None:
    scenario = fanin.Scenario.load("multihost")
    assert "cost" not in scenario.plan()["plan"]
    assert scenario.plan(cost=True)["plan"]["cost"]["sweep"]
    # Event sizes vary in this one, so that a rarer event needs a larger buffer.
    varying = fanin.Scenario.load("phase2")
    assert needed(varying.plan(quantile="99.99 %")) > needed(varying.plan(quantile="90 %"))


def needed(summary: dict[str, Any]) -> int:
    rows = summary["plan"]["derivations"]
    return next(int(row["value"]) for row in rows if row["name"] == "dedicated_buffer_needed")


@pytest.mark.parametrize("quantile", ["0", "1", "200 %"])
def test_a_quantile_that_is_none_is_refused(quantile: str) -> None:
    with pytest.raises(ValueError, match="above 0 and below 1"):
        fanin.Scenario.load("incast").plan(quantile=quantile)
