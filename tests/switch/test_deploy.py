"""The unit of systemd, as systemd itself reads it."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

DEPLOY = Path(__file__).resolve().parents[2] / "deploy" / "switch"


def test_systemd_reads_the_unit_without_complaint(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is missing: this machine has no systemd")
    text = (DEPLOY / "fanin-switch@.service").read_text()
    assert "ExecStart=/usr/bin/fanin switch /etc/fanin/%i.toml" in text
    # A reboot loses the filters of the bypass; without the file, the unit starts all the same.
    assert "ExecStartPre=-/etc/fanin/%i.bypass\n" in text
    # The command is not installed here; what matters is everything else.
    unit = tmp_path / "fanin-switch@.service"
    unit.write_text(text.replace("/usr/bin/fanin", "/bin/true"))
    command = ["systemd-analyze", "verify", "--man=no", str(unit)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    complaints = [line for line in run.stderr.splitlines() if "fanin-switch" in line]
    assert run.returncode == 0, run.stderr
    assert not complaints


def test_the_dashboard_has_a_panel_for_what_matters() -> None:
    dashboard = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    queries = " ".join(target["expr"] for panel in dashboard["panels"] for target in panel["targets"])
    for name in ("ring_alarm", "queue_dropped_frames_total", "port_dropped_frames_total", "queue_bytes"):
        assert f"fanin_switch_{name}" in queries
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard["panels"]]
    assert len(set(places)) == len(places)
