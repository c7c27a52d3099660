"""The shell commands of a script: kernel settings, mapped onto a profile of `fanin-tcp`."""

import math
import re
import shlex

from script import UnsupportedError

# Common settings of packetdrill's scripts (`defaults.sh`): the kernel's own defaults but for these.
COMMON = {
    "tcp_rmem": "4096 540000 15728640",
    "tcp_timestamps": "1",
    "tcp_sack": "1",
    "tcp_dsack": "1",
    "tcp_reordering": "3",
    "tcp_congestion_control": "cubic",
    "tcp_slow_start_after_idle": "0",
    "tcp_early_retrans": "4",
    "tcp_tso_win_divisor": "3",
    "tcp_ecn": "0",
    "tcp_min_tso_segs": "2",
    "tcp_comp_sack_nr": "44",
}

# Settings without an effect on the model, with the value for which this holds; None for any.
WITHOUT_EFFECT: dict[str, str | None] = {
    "tcp_wmem": None,
    # The model has these with the kernel's defaults.
    "tcp_syn_retries": "6",
    "tcp_synack_retries": "5",
    "tcp_frto": "2",
    "tcp_invalid_ratelimit": "500",
    "tcp_fack": None,
    "tcp_recovery": "1",
    "tcp_ecn_option": None,
    "tcp_pacing_ss_ratio": "200",
    "tcp_pacing_ca_ratio": "120",
    "tcp_notsent_lowat": None,
    "tcp_fastopen": None,
    "tcp_fastopen_key": None,
    "tcp_syncookies": None,
    "tcp_no_metrics_save": None,
    "tcp_limit_output_bytes": None,
    "tcp_autocorking": None,
    "tcp_comp_sack_delay_ns": None,
    "tcp_mtu_probing": "0",
    "tcp_shrink_window": "0",
    "tcp_fin_timeout": None,
}

# The shell's arithmetic, as scripts write sizes.
PRODUCT = re.compile(r"\$\(\(([\d *]+)\)\)")


class Sysctls:
    """The kernel's settings as far as the script has set them."""

    def __init__(self) -> None:
        self.values = dict(COMMON)
        self.hystart = True
        self.initial_window: int | None = None

    def run(self, text: str) -> float:
        """Run shell commands. Return for how many seconds they sleep."""
        pause = 0.0
        for line in text.replace("\\\n", " ").split("\n"):
            for command in re.split(r"&&|\|\||;", line):
                words = shlex.split(command, comments=True)
                if words:
                    pause += self.run_one(words)
        return pause

    def run_one(self, words: list[str]) -> float:
        """Run one command. Return for how many seconds it sleeps."""
        name = words[0].rsplit("/", 1)[-1]
        if name in ("defaults.sh", "true", "set", "cat") or name.startswith("sysctl_restore"):
            return 0.0
        if name == "set_sysctls.py":
            for pair in words[1:]:
                self.assign(*pair.split("=", 1))
            return 0.0
        if name == "sysctl":
            for pair in words[1:]:
                if "=" in pair:
                    self.assign(*pair.split("=", 1))
            return 0.0
        if name == "echo" and len(words) == 4 and words[2] == ">":
            self.assign(words[3], words[1])
            return 0.0
        if name == "sleep":
            return float(words[1])
        if name == "tc" and "pfifo" in words and "limit" not in words:
            return 0.0
        if name == "ip" and words[1:2] == ["tcp_metrics"]:
            return 0.0
        if name == "ip" and "initcwnd" in words:
            self.initial_window = int(words[words.index("initcwnd") + 1])
            return 0.0
        raise UnsupportedError(f"command {' '.join(words[:3])}")

    def assign(self, path: str, value: str) -> None:
        """Set one setting, named by its path or by its dotted name."""
        name = re.split(r"[./]", path.strip())[-1]
        value = PRODUCT.sub(lambda found: str(math.prod(map(int, found[1].split("*")))), value.strip())
        if name == "hystart_detect":
            self.hystart = value != "0"
        elif name == "hystart":
            self.hystart = value == "1"
        elif name in WITHOUT_EFFECT:
            needed = WITHOUT_EFFECT[name]
            if needed is not None and value != needed:
                raise UnsupportedError(f"sysctl {name}={value}")
        elif name in COMMON or name == "tcp_rto_min_us":
            self.values[name] = value
        else:
            raise UnsupportedError(f"sysctl {name}")

    def settings(self, is_passive: bool) -> dict[str, int | str]:
        """Return the changes to a profile, for a connection that is opened passively or actively."""
        values = self.values
        timestamps = values["tcp_timestamps"] != "0"
        congestion_control = values["tcp_congestion_control"]
        if congestion_control not in ("cubic", "reno"):
            raise UnsupportedError(f"congestion control {congestion_control}")
        if values["tcp_ecn"] not in ("0", "1", "2"):
            raise UnsupportedError(f"sysctl tcp_ecn={values['tcp_ecn']} (accurate ECN)")
        space = int(values["tcp_rmem"].split()[2])
        # tcp_select_initial_window.
        scale = min(max(space.bit_length() - 1 - 15, 0), 14)
        settings: dict[str, int | str] = {
            "timestamps": int(timestamps),
            "sack": int(values["tcp_sack"]),
            "dsack": int(values["tcp_dsack"]),
            "reordering": int(values["tcp_reordering"]),
            "slow_start_after_idle": int(values["tcp_slow_start_after_idle"]),
            "tail_loss_probe": int(int(values["tcp_early_retrans"]) >= 3),
            "tso_win_divisor": int(values["tcp_tso_win_divisor"]),
            "burst_segments_min": int(values["tcp_min_tso_segs"]),
            "ecn": int(values["tcp_ecn"] in (("1", "2") if is_passive else ("1",))),
            "congestion_control": congestion_control,
            "hystart": int(self.hystart),
            "compressed_sacks": int(values["tcp_comp_sack_nr"] != "0"),
            "receive_window_initial": min(int(values["tcp_rmem"].split()[1]) // 2, 65535),
            "receive_window": space // 2,
            "window_scale": scale,
            "nodelay": 0,
        }
        if self.initial_window is not None:
            settings["initial_window"] = self.initial_window
        if "tcp_rto_min_us" in values:
            settings["rto_min_us"] = int(values["tcp_rto_min_us"])
        return settings
