"""packetdrill's script language: from a text to a list of events."""

import re
import textwrap
from dataclasses import dataclass, field


class UnsupportedError(Exception):
    """The script uses something that the interpreter or the model does not have."""


class ScriptError(Exception):
    """The text is not a script."""


@dataclass
class Packet:
    """A TCP segment as a script writes it."""

    inbound: bool
    flags: str
    seq: int
    end: int
    payload: int
    ack: int | None
    window: int | None
    ecn: str | None
    """`noecn`, `ect0`, `ect1`, `ce`, `ect01`, or None where the script does not say."""
    options: list[tuple[str, list[int]]] | None
    """Options by name, with their numbers; None for `<...>`, any options."""


@dataclass
class Call:
    """A system call and the result that the script expects."""

    name: str
    arguments: list[str]
    result: int | None
    """None for `?`, any result."""
    error: str | None
    """The name of the errno, such as EAGAIN."""
    end: float | None
    """When a blocking call returns, as the script writes it."""


@dataclass
class Command:
    """Shell commands."""

    text: str


@dataclass
class Code:
    """Python code with assertions about `tcpi_*`."""

    text: str


@dataclass
class Event:
    """One event, and when it happens."""

    line: int
    time: float
    time_end: float | None
    relative: bool
    any_time: bool
    action: Packet | Call | Command | Code


@dataclass
class Script:
    """A whole script."""

    options: dict[str, str] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)


TIME = re.compile(r"(?P<any>\*)|(?P<sign>\+?)(?P<from>\d*\.?\d+|\d+\.)\s*(?:~\s*\+?(?P<to>\d*\.?\d+|\d+\.))?")
PACKET = re.compile(
    r"(?P<direction>[<>])\s*"
    r"(?:[\[(](?P<ip>[^\])]*)[\])]\s*)?"
    r"(?P<flags>[A-Z]*\.?[A-Z0-9]*|-)\s+"
    r"(?P<seq>\d+):(?P<end>\d+)\((?P<payload>\d+)\)"
    r"(?:\s+ack\s+(?P<ack>\d+))?"
    r"(?:\s+win\s+(?P<window>\d+))?"
    r"(?:\s+urg\s+(?P<urgent>\d+))?"
    r"(?:\s*<(?P<options>[^>]*)>)?"
)
CALL = re.compile(r"(?:\.\.\.\s*(?P<end>\d*\.?\d+)\s+)?(?P<name>[a-z_][a-z0-9_]*)\s*\(")
RESULT = re.compile(
    r"\s*=\s*(?:(?P<any>\?|\.\.\.)|(?P<value>-?(?:0x[0-9a-fA-F]+|\d+)))"
    r"(?:[ \t]+(?P<error>E[A-Z]+))?(?:[ \t]*\([^)\n]*\))?"
)


def strip_comments(text: str) -> str:
    """Blank out comments, but keep line numbers, strings, shell commands and code."""
    pattern = re.compile(r'"(?:\\.|[^"\\\n])*"|`[^`]*`|%\{.*?\}%|//[^\n]*|/\*.*?\*/', re.DOTALL)

    def blank(match: re.Match[str]) -> str:
        found = match.group()
        return re.sub(r"[^\n]", " ", found) if found.startswith(("//", "/*")) else found

    return pattern.sub(blank, text)


def parse_options(text: str | None) -> list[tuple[str, list[int]]] | None:
    """Return the TCP options of a packet."""
    if text is None:
        return []
    if text.strip() == "...":
        return None
    options: list[tuple[str, list[int]]] = []
    for part in text.split(","):
        words = part.split()
        if not words:
            continue
        name = words[0]
        if name in ("nop", "eol"):
            continue
        if name == "TS":
            match = re.fullmatch(r"TS\s+val\s+(\d+)\s+ecr\s+(\d+)", part.strip())
            if not match:
                raise ScriptError(f"timestamps {part!r}")
            options.append(("TS", [int(match[1]), int(match[2])]))
        elif name in ("mss", "wscale"):
            if not re.fullmatch(rf"{name}\s+\d+", part.strip()):
                raise ScriptError(f"option {part.strip()!r}: {name} takes a number")
            options.append((name, [int(words[1])]))
        elif name == "sackOK":
            options.append((name, []))
        elif name == "sack":
            if not re.fullmatch(r"sack(\s+\d+:\d+)+", part.strip()):
                raise ScriptError(f"option {part.strip()!r}: sack takes blocks like 1:1001")
            options.append((name, [int(number) for block in words[1:] for number in block.split(":")]))
        else:
            raise UnsupportedError(f"TCP option {name}")
    return options


def split_arguments(text: str) -> list[str]:
    """Split a call's arguments at the commas that stand outside of brackets and strings."""
    parts, depth, start, quoted = [], 0, 0, False
    for index, letter in enumerate(text):
        if letter == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


class Parser:
    """Reads a script from its beginning to its end."""

    def __init__(self, text: str) -> None:
        self.text = strip_comments(text)
        self.position = 0

    def line(self) -> int:
        """Return the number of the current line."""
        return self.text.count("\n", 0, self.position) + 1

    def skip(self) -> bool:
        """Skip white space. Return whether anything is left."""
        while self.position < len(self.text) and self.text[self.position].isspace():
            self.position += 1
        return self.position < len(self.text)

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Take what matches here."""
        match = pattern.match(self.text, self.position)
        if match:
            self.position = match.end()
        return match

    def parse(self) -> Script:
        """Return the whole script."""
        script = Script()
        while self.skip():
            if match := self.take(re.compile(r"--([a-z_]+)(?:=(\S+))?")):
                script.options[match[1]] = match[2] or ""
                continue
            line = self.line()
            if self.text[self.position] == "`":
                # Commands before the first event and after the last have no time.
                script.events.append(Event(line, 0.0, None, True, False, self.parse_command()))
                continue
            time = self.take(TIME)
            if not time:
                rest = self.text[self.position :].split("\n", 1)[0]
                raise ScriptError(f"line {line}: {rest!r}")
            script.events.append(
                Event(
                    line,
                    float(time["from"] or 0),
                    float(time["to"]) if time["to"] else None,
                    time["sign"] == "+",
                    time["any"] is not None,
                    self.parse_action(),
                )
            )
        return script

    def parse_action(self) -> Packet | Call | Command | Code:
        """Return what happens."""
        self.skip()
        here = self.text[self.position : self.position + 2]
        if here == "%{":
            return self.parse_code()
        if here[:1] == "`":
            return self.parse_command()
        if here[:1] in "<>":
            return self.parse_packet()
        return self.parse_call()

    def parse_code(self) -> Code:
        end = self.text.find("}%", self.position)
        if end < 0:
            raise ScriptError(f"line {self.line()}: code without an end")
        code = self.text[self.position + 2 : end]
        self.position = end + 2
        return Code(textwrap.dedent(code.lstrip(" ")).strip() if "\n" in code else code.strip())

    def parse_command(self) -> Command:
        end = self.text.find("`", self.position + 1)
        if end < 0:
            raise ScriptError(f"line {self.line()}: a command without an end")
        command = self.text[self.position + 1 : end]
        self.position = end + 1
        return Command(command)

    def parse_packet(self) -> Packet:
        match = self.take(PACKET)
        if not match:
            rest = self.text[self.position :].split("\n", 1)[0].strip()
            word = next(
                (word for word in ("udp", "icmp", "ipv4", "ipv6", "gre", "mpls") if word in rest), None
            )
            raise UnsupportedError(f"{word} packets" if word else f"packet {rest!r}")
        ip = [part.strip() for part in (match["ip"] or "").split(",") if part.strip()]
        ecn = None
        for part in ip:
            if part not in ("noecn", "ect0", "ect1", "ect01", "ce"):
                raise UnsupportedError(f"IP field {part}")
            ecn = part
        if match["urgent"]:
            raise UnsupportedError("urgent data")
        flags = match["flags"]
        if re.search(r"[^SFRPEW.\-]", flags):
            raise UnsupportedError(f"flags {flags} (accurate ECN)")
        return Packet(
            inbound=match["direction"] == "<",
            flags=flags,
            seq=int(match["seq"]),
            end=int(match["end"]),
            payload=int(match["payload"]),
            ack=int(match["ack"]) if match["ack"] else None,
            window=int(match["window"]) if match["window"] else None,
            ecn=ecn,
            options=parse_options(match["options"]),
        )

    def parse_call(self) -> Call:
        line = self.line()
        match = self.take(CALL)
        if not match:
            rest = self.text[self.position :].split("\n", 1)[0]
            raise ScriptError(f"line {line}: {rest!r}")
        start, depth = self.position, 1
        while depth and self.position < len(self.text):
            letter = self.text[self.position]
            if letter == '"':
                self.position = self.text.index('"', self.position + 1)
            depth += {"(": 1, ")": -1}.get(letter, 0)
            self.position += 1
        arguments = split_arguments(self.text[start : self.position - 1])
        result = self.take(RESULT)
        if not result:
            raise ScriptError(f"line {line}: a call without a result")
        value = None if result["any"] else int(result["value"], 0)
        end = float(match["end"]) if match["end"] else None
        return Call(match["name"], arguments, value, result["error"], end)


def parse(text: str) -> Script:
    """Return the script that a text holds."""
    return Parser(text).parse()
