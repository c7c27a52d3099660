"""Each alert of `deploy/prometheus` has a case in which it fires, and one in which it does not."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RULES = sorted((ROOT / "deploy" / "prometheus").glob("*-rules.yml"))
CASES = (ROOT / "crates" / "node" / "tests" / "rules.yml").read_text()


def test_each_alert_fires_in_a_case_and_is_silent_in_another() -> None:
    alerts = {
        name for path in RULES for name in re.findall(r"^ +- alert: (\w+)$", path.read_text(), re.MULTILINE)
    }
    fires = re.findall(r"^ +- alertname: (\w+)\n +eval_time: \w+\n +exp_alerts:\n +- ", CASES, re.MULTILINE)
    silent = re.findall(r"^ +- \{alertname: (\w+), eval_time: \w+\}$", CASES, re.MULTILINE)
    assert len(RULES) == 2
    assert set(fires) == alerts
    assert set(silent) == alerts
