"""One connection of `fanin-tcp`, in a process of its own: the example `packetdrill` of the crate."""

import subprocess
from dataclasses import dataclass, field
from pathlib import Path

TIMESTAMP_BYTES = 12


@dataclass
class Sent:
    """A segment that the connection sent, or a burst of segmentation offload, with the script's numbers."""

    time: int
    """In nanoseconds."""
    flags: str
    seq: int
    payload: int
    ack: int
    window: int
    is_retransmission: bool
    continues: bool
    segments: int = 1
    options: dict[str, list[int]] = field(default_factory=dict)

    @property
    def end(self) -> int:
        """The number after the last byte."""
        return self.seq + self.payload

    def __str__(self) -> str:
        """As a script writes it."""
        ack = f" ack {self.ack}" if "." in self.flags else ""
        options = "".join(f" {name} {numbers}" for name, numbers in self.options.items())
        flags = "".join(letter for letter in self.flags if letter not in "ec")
        return f"{flags} {self.seq}:{self.end}({self.payload}){ack} win {self.window}{options}"


class Connection:
    """A connection under test."""

    def __init__(self, binary: Path, profile: str, settings: dict[str, int | str]) -> None:
        settings = dict(settings)
        self.mss = int(settings.pop("mss_with_options", 1460))
        settings["mss"] = self.mss - (TIMESTAMP_BYTES if settings["timestamps"] else 0)
        self.process = subprocess.Popen([binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.sent: list[Sent] = []
        self.state: dict[str, str] = {}
        self.own_scale: int | None = None
        self.peer_scale: int | None = None
        self.has_syn = False
        self.is_ect_seen = False
        self.ask("open", profile, *(f"{key}={value}" for key, value in settings.items()))

    def ask(self, *words: object) -> str:
        """Send a request. Return the last line of the reply but `ok`."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        last = ""
        while True:
            line = self.process.stdout.readline().rstrip("\n")
            kind, _, rest = line.partition(" ")
            if kind == "out":
                self.note(int(str(words[1])), rest)
            elif kind == "ok":
                if rest:
                    self.state = dict(pair.split("=", 1) for pair in rest.split())
                return last
            elif kind == "info":
                last = rest
            else:
                raise RuntimeError(f"{' '.join(map(str, words))}: {line or 'the endpoint has died'}")

    def call(self, name: str, time: int, *words: object) -> int:
        """Make a call at a time in nanoseconds. Return its result."""
        self.ask(name, time, *words)
        return int(self.state["result"])

    def note(self, time: int, line: str) -> None:
        """Note a segment that was sent."""
        flags, offset, payload, ack, window, *rest = line.split()
        pairs = [word.split("=", 1) for word in rest]
        options: dict[str, list[int]] = {}
        for name, value in pairs:
            if name == "sack":
                options.setdefault("sack", []).extend(int(edge) + 1 for edge in value.split(":"))
            elif name not in ("again", "continues"):
                options[name] = [int(number) for number in value.split(":")]
        known = dict(pairs)
        is_syn = "S" in flags
        if is_syn:
            self.own_scale = options.get("wscale", [None])[0]
        scale = 0 if is_syn or None in (self.own_scale, self.peer_scale) else self.own_scale or 0
        segment = Sent(
            time=time,
            flags=flags.replace("-", ""),
            seq=int(offset) + (0 if is_syn else 1),
            payload=int(payload),
            ack=int(ack) + 1,
            window=int(window) >> scale,
            is_retransmission=known["again"] == "1",
            continues=known["continues"] == "1",
            options=options,
        )
        last = self.sent[-1] if self.sent else None
        if last and last.continues and last.time == time and last.end == segment.seq:
            last.payload += segment.payload
            # CWR is in the first segment of a burst only.
            last.flags = segment.flags + ("W" if "W" in last.flags else "")
            last.continues = segment.continues
            last.segments += 1
        else:
            self.sent.append(segment)

    def deadline(self) -> int | None:
        """When a timer may expire, in nanoseconds."""
        at = int(self.state.get("deadline", -1))
        return at if at >= 0 else None

    def info(self, time: int) -> dict[str, int]:
        """Return what `tcp_info` says, by the names of scripts."""
        states = ["Established", "SynSent", "SynReceived", "FinWait1", "FinWait2", "TimeWait"]
        states += ["Closed", "CloseWait", "LastAck", "Listen", "Closing"]
        found = dict(pair.split("=", 1) for pair in self.ask("info", time).split())
        values = {f"tcpi_{name}": int(value) for name, value in found.items() if name != "state"}
        values["tcpi_state"] = states.index(found["state"]) + 1
        values["tcpi_advmss"] = self.mss - (TIMESTAMP_BYTES if values["tcpi_timestamps"] else 0)
        has_scale = self.own_scale is not None and self.peer_scale is not None
        flags = (values["tcpi_timestamps"], values["tcpi_sack"], int(has_scale), values["tcpi_ecn"])
        values["tcpi_options"] = sum(bit << index for index, bit in enumerate(flags))
        values["tcpi_options"] |= 16 if self.is_ect_seen and values["tcpi_ecn"] else 0
        for name in ("tcpi_timestamps", "tcpi_sack", "tcpi_wscale", "tcpi_ecn"):
            del values[name]
        return values

    def stop(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
