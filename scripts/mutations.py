"""Check that simulated worlds find bugs: plant each of a list of bugs, and play worlds until one fails.

Usage: scripts/mutations.py [--seeds 20000] [--limit 1800] [--profile dev] [--only NAME...] [--list]
                            [--check] [--build] [--table FILE]
Each bug is a small change of one file. One program has all of them: each changed function is there once
without a bug and once with each of its bugs. The variable FANIN_PLANTED names the bug that acts. The
program is built from a copy of the tree in target/planted. `--build` only builds it, and prints its path.
`--check` only looks whether each bug's text is still there, once.
`--table` writes the table of docs/engineering/worlds.md from lines that an earlier call has printed.
See docs/engineering/worlds.md.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "engineering" / "worlds.md"


@dataclass(frozen=True)
class Bug:
    """A bug: `old` in a file becomes `new`."""

    name: str
    path: str
    old: str
    new: str


MESSAGE, NODE, FLOW = "crates/message/src/endpoint", "crates/node/src", "crates/dataflow/src"
POOL = "crates/message/src/pool.rs"
ASSEMBLER = "crates/message/src/assembler.rs"

BUGS = [
    Bug(
        "timer-lost-when-two-are-due",
        f"{MESSAGE}/timers.rs",
        "Due::Attempt | Due::Heartbeat | Due::End(_) => self.arm(index, self.now),",
        "Due::Attempt | Due::Heartbeat | Due::End(_) => {}",
    ),
    Bug(
        "unread-bytes-not-reported-again",
        f"{MESSAGE}/transfer.rs",
        "} else if more {\n                        self.look_again(index, false);",
        "} else if more {",
    ),
    Bug(
        "a-peer-takes-all-memory",
        POOL,
        "        held == 0 || bytes == 0 || held + bytes <= self.held_bytes_max || !pool.is_scarce(bytes)\n",
        "        held + bytes < u64::MAX || pool.is_scarce(bytes)\n",
    ),
    Bug(
        "memory-of-a-peer-does-not-come-back",
        POOL,
        "        self.held_bytes.fetch_sub(bytes, Ordering::SeqCst);\n",
        "",
    ),
    Bug(
        "a-stopped-peer-waits-for-all-its-memory",
        POOL,
        "        self.wanted_bytes.store(0, Ordering::SeqCst);\n",
        "        if self.held_bytes() > 0 {\n            return false;\n        }\n"
        "        self.wanted_bytes.store(0, Ordering::SeqCst);\n",
    ),
    Bug(
        "a-peer-that-waited-for-memory-is-not-read",
        f"{MESSAGE}/timers.rs",
        "            slot.last_in = now;\n            self.watch(index);\n",
        "            slot.last_in = now;\n",
    ),
    Bug(
        "an-urgent-peer-waits-for-memory",
        ASSEMBLER,
        "        self.memory.as_ref().is_none_or(|memory| memory.is_urgent())\n",
        "        self.memory.is_none()\n",
    ),
    Bug(
        "blocks-of-urgent-peers-serve-all",
        ASSEMBLER,
        "    if !is_free || !anyway && !pool.has_room(0) {\n",
        "    if !is_free {\n",
    ),
    Bug(
        "no-heartbeats",
        f"{MESSAGE}/timers.rs",
        "            Due::Heartbeat => {\n                self.heartbeat(index);",
        "            Due::Heartbeat => {",
    ),
    Bug(
        "no-attempt-after-a-failed-one",
        f"{MESSAGE}/connections.rs",
        "ConnectionOrigin::Outgoing(outgoing) if outgoing.given_up => None,",
        "ConnectionOrigin::Outgoing(outgoing) if outgoing.given_up || !established => None,",
    ),
    Bug(
        "silence-not-noticed",
        f"{MESSAGE}/timers.rs",
        "        if slot.last_in + silence <= now {\n",
        "        if false {\n",
    ),
    Bug(
        "rest-of-a-partial-write-forgotten",
        f"{MESSAGE}/transfer.rs",
        "blocked = bytes < offered;",
        "blocked = bytes < offered;\n                    if blocked { return false; }",
    ),
    Bug(
        "journal-not-synchronised",
        f"{NODE}/journal.rs",
        ".and_then(|()| if self.sync { self.file.sync_data() } else { Ok(()) });",
        ";",
    ),
    Bug(
        "journal-name-not-synchronised",
        f"{NODE}/journal.rs",
        "            lines::sync_folder(machine, path)?;\n        }\n        Ok(Self {",
        "        }\n        Ok(Self {",
    ),
    Bug(
        "names-of-a-rotation-not-synchronised",
        f"{NODE}/journal.rs",
        "        lines::sync_folder(&self.machine, &self.path)?;\n        (self.file",
        "        (self.file",
    ),
    Bug(
        "rest-of-a-failed-commit-stays",
        f"{NODE}/journal.rs",
        "        if self.has_rest {\n",
        "        if false {\n",
    ),
    Bug(
        "resumed-at-the-last-event",
        f"{NODE}/resume.rs",
        "Some(L1Id(record.event.0 + 1))",
        "Some(L1Id(record.event.0))",
    ),
    Bug(
        "unfinished-events-not-resumed",
        f"{NODE}/resume.rs",
        "                self.outstanding.insert(record.event, collector);\n",
        "                let _ = collector;\n",
    ),
    Bug(
        "work-of-deleted-journals-not-resumed",
        f"{NODE}/resume.rs",
        "                self.outstanding = open.outstanding.into_iter().collect();\n",
        "",
    ),
    Bug(
        "stored-before-it-is-on-disk",
        f"{NODE}/store.rs",
        "open.file.write_all(&waiting).and_then(|()| open.file.sync_data())",
        "open.file.write_all(&waiting)",
    ),
    Bug(
        "failed-group-said-to-be-stored",
        f"{NODE}/store.rs",
        "if written.is_ok() { stored } else { Stored::Failed(id) }",
        "stored",
    ),
    Bug(
        "failed-group-not-cut-off",
        f"{NODE}/store.rs",
        "        open.file.set_len(bytes)?;\n        open.file.seek(SeekFrom::Start(bytes))?;\n",
        "        open.file.seek(SeekFrom::Current(0))?;\n",
    ),
    Bug(
        "torn-file-not-cut",
        f"{NODE}/store/recover.rs",
        "        file.set_len(end)?;\n",
        "",
    ),
    Bug(
        "file-number-taken-again",
        f"{NODE}/store.rs",
        "        self.next_number += 1;\n",
        "        self.next_number += u32::from(number == 0);\n",
    ),
    Bug(
        "proof-of-a-second-assignment-lost",
        f"{NODE}/roles/collector.rs",
        "let is_over = ends && !self.collector.has(event);",
        "let is_over = ends;",
    ),
    Bug(
        "entry-for-a-late-answer",
        f"{NODE}/roles/collector.rs",
        "        if let Some((event, readout, bytes)) = answer.filter(|_| is_counted) {\n"
        "            if let Some(data) = self.data.get_mut(&event) {\n"
        "                *data += bytes;\n            }\n",
        "        let _ = is_counted;\n"
        "        if let Some((event, readout, bytes)) = answer {\n"
        "            *self.data.entry(event).or_default() += bytes;\n",
    ),
    Bug(
        "messages-that-wait-outlive-their-connection",
        f"{NODE}/wire/mod.rs",
        "        self.backlog.clear(partner);\n",
        "        let _ = partner;\n",
    ),
    Bug(
        "messages-that-wait-are-not-sent",
        f"{NODE}/wire/mod.rs",
        "                self.send_backlog(partner);\n                None\n",
        "                let _ = partner;\n                None\n",
    ),
    Bug(
        "a-credit-too-few-comes-back",
        f"{FLOW}/credit.rs",
        "self.used.checked_sub(u32::from(cost))",
        "self.used.checked_sub(u32::from(cost).saturating_sub(1))",
    ),
    Bug(
        "credits-of-a-lost-readout-kept",
        f"{FLOW}/collector/collect.rs",
        "            self.credits.give_back(cost);\n            self.return_paced(paced);\n"
        "            if self.slots",
        "            let _ = cost;\n            self.return_paced(paced);\n            if self.slots",
    ),
    Bug(
        "bytes-of-an-answer-lost",
        f"{NODE}/data.rs",
        "        self.parts.extend(part.parts);\n",
        "        if self.parts.is_empty() {\n            self.parts.extend(part.parts);\n        }\n",
    ),
    Bug(
        "no-request-again",
        f"{FLOW}/collector/collect.rs",
        "            self.enqueue(now, Blocked { retries: retries + 1, ..blocked });",
        "            let _ = blocked;",
    ),
    Bug(
        "clear-before-stored",
        f"{FLOW}/collector/ship.rs",
        "        self.record(now, event, EventStep::Shipped { logger, attempt, stream, bytes, missing });\n",
        "        self.record(now, event, EventStep::Shipped { logger, attempt, stream, bytes, missing });\n"
        "        self.finish(now, index, Outcome::Stored);\n",
    ),
    Bug(
        "nothing-again-after-a-lost-logger",
        f"{FLOW}/collector/ship.rs",
        "            self.counters.reshipped += u64::from(self.slots[index].phase == Phase::Sent(logger));\n"
        "            self.offer(now, index, None);",
        "            self.counters.reshipped += u64::from(self.slots[index].phase == Phase::Sent(logger));",
    ),
    Bug(
        "a-collector-that-stops-announces-units",
        f"{FLOW}/collector/units.rs",
        "        if self.is_stopping || self.shipping >= self.config.shipping_max {\n            assert!",
        "        if self.shipping >= self.config.shipping_max {\n            assert!",
    ),
    Bug(
        "a-collector-stops-without-an-answer",
        f"{NODE}/roles/collector.rs",
        "        self.collector.has_left() && self.collector.waits()",
        "        self.collector.waits()",
    ),
    Bug(
        "a-collector-that-stops-is-given-events",
        f"{FLOW}/supervisor/mod.rs",
        "                        for unit in self.layout.units_of(collector) {\n"
        "                            self.remove_free(unit);\n                        }\n"
        "                        self.out",
        "                        self.out",
    ),
    Bug(
        "a-clear-of-an-absent-event-is-forgotten",
        f"{FLOW}/readout.rs",
        "        self.source.delete(event);\n        if self.config.memory.is_none() {\n",
        "        if self.keeps(event) {\n            self.source.delete(event);\n        }\n"
        "        if self.config.memory.is_none() {\n",
    ),
    Bug(
        "only-the-latest-missed-clears-are-sent",
        f"{FLOW}/supervisor/mod.rs",
        "saturating_sub(CLEARED_AGAIN_MAX)",
        "saturating_sub(256)",
    ),
    Bug(
        "stored-at-arrival",
        f"{FLOW}/logger.rs",
        "                self.write(now, collector, event, stream, missing, payload);\n",
        "                self.out.push_back((peer, Message::Stored { event, stream }));\n"
        "                self.write(now, collector, event, stream, missing, payload);\n",
    ),
    Bug(
        "stored-twice",
        f"{FLOW}/logger.rs",
        "                self.write(now, collector, event, stream, missing, payload);\n",
        "                if event.0 % 7 == 3 {\n"
        "                    self.counters.held += size;\n"
        "                    self.write(now, collector, event, stream, missing, payload.clone());\n"
        "                }\n"
        "                self.write(now, collector, event, stream, missing, payload);\n",
    ),
    Bug(
        "events-of-a-lost-collector-forgotten",
        f"{FLOW}/supervisor/mod.rs",
        "        for one in gone {\n            self.take(now, collector, one);\n        }\n",
        "        drop(gone);\n",
    ),
    Bug(
        "duplicates-completed-again",
        f"{FLOW}/supervisor/mod.rs",
        "            self.record(now, event, EventStep::Duplicated { collector, outcome });",
        "            self.record(now, event, EventStep::Completed { collector, outcome });",
    ),
    Bug(
        "a-leader-acts-before-its-partner-has-the-record",
        f"{NODE}/roles/paired/mod.rs",
        "        let limit = self.partner().map_or(u64::MAX, |_| self.acknowledged);",
        "        let limit = u64::MAX;",
    ),
    Bug(
        "a-partner-answers-before-its-disk",
        f"{NODE}/process.rs",
        "Journal::open_shared(machine, &path, &process, epoch_us, true, &mut earlier)",
        "Journal::open_shared(machine, &path, &process, epoch_us, me == Peer::Supervisor, &mut earlier)",
    ),
    Bug(
        "a-standby-takes-over-with-a-stale-log",
        f"{NODE}/roles/paired/leaderless.rs",
        "self.known.leader != self.me && self.known.partner == self.log.id()",
        "self.known.leader != self.me",
    ),
    Bug(
        "a-standby-takes-over-without-a-vote",
        f"{NODE}/roles/paired/leaderless.rs",
        "            self.proposer.propose(now, self.known, next);\n",
        "            self.learn(now, next);\n",
    ),
    Bug(
        "a-leader-goes-on-alone-without-a-vote",
        f"{NODE}/roles/paired/mod.rs",
        "            self.proposer.propose(now, self.known, self.alone());\n            // One call",
        "            let next = self.alone();\n            self.learn(now, next);\n            // One call",
    ),
    Bug(
        "a-replaced-leader-is-not-fenced",
        f"{NODE}/roles/paired/mod.rs",
        "            if !self.has_leader || decided.leader == self.me {\n"
        "                self.step_down(now);\n            }\n",
        "",
    ),
    Bug(
        "a-vote-is-forgotten",
        f"{NODE}/succession/witness.rs",
        "        let term = self.known.term + 1;\n",
        "        let term = self.known.term + 1;\n        self.accepted = None;\n",
    ),
    Bug(
        "a-log-is-taken-for-the-beginning-of-another",
        f"{NODE}/roles/paired/log.rs",
        "        self.terms[place].end <= size && size <= limit\n",
        "        self.terms[place].end <= size && limit > 0\n",
    ),
    Bug(
        "a-new-log-keeps-its-old-lines",
        f"{NODE}/roles/paired/mod.rs",
        "                self.changes.push_back(LogChange::Restart(position));\n",
        "",
    ),
    Bug(
        "messages-of-a-lost-connection-are-kept",
        f"{NODE}/roles/paired/mod.rs",
        "        self.held.retain(|(_, to, _)| *to != peer);\n",
        "",
    ),
    Bug(
        "a-readout-without-its-record-votes",
        f"{NODE}/succession/witness.rs",
        "                self.votes_from = u64::MAX;\n",
        "                self.votes_from = 1;\n",
    ),
    Bug(
        "a-readout-without-its-record-never-votes-again",
        f"{NODE}/roles/paired/leading.rs",
        "is_free && self.system.readouts.len() > 2",
        "is_free && self.system.readouts.is_empty()",
    ),
    Bug(
        "a-pairing-under-way-is-forgotten",
        f"{NODE}/roles/paired/leaderless.rs",
        "        self.log.pairing_with_this(self.known).filter(|pairing| pairing.leader != self.me)\n",
        "        None\n",
    ),
    Bug(
        "a-takeover-forgets-the-records-of-the-leader",
        f"{NODE}/roles/paired/log.rs",
        "            self.work.take(&journal::parse(line).map_err(wrong)?.record);\n",
        "            journal::parse(line).map_err(wrong)?;\n",
    ),
    Bug(
        "a-timeout-returns-paced-credit",
        f"{FLOW}/paced_credits/mod.rs",
        "        // Late and overdue requests have been counted before.\n",
        "        self.on_withdrawn(credit);\n",
    ),
    Bug(
        "overdue-paced-credit-does-not-come-back",
        f"{FLOW}/paced_credits/mod.rs",
        "let overdue = self.overdue.remove(&credit.number);",
        "let overdue = self.overdue.get(&credit.number);",
    ),
    Bug(
        "a-process-is-started-again-once",
        f"{NODE}/launch/restart.rs",
        "        self.again = Some(now + pause);\n",
        "        self.again = (self.quick_ends < 2).then(|| now + pause);\n",
    ),
    Bug(
        "a-supervisor-that-fails-as-it-stops-is-given-up",
        f"{NODE}/launch/stop.rs",
        "let needs_restart = role == Role::Supervisor && is_restarted;",
        "let needs_restart = role == Role::Supervisor && !is_restarted;",
    ),
    Bug(
        "finished-events-count-as-taken-away",
        f"{FLOW}/supervisor/mod.rs",
        "            state.outstanding.swap_remove(place);\n",
        "            state.outstanding.swap_remove(place);\n            state.taken.push(event);\n",
    ),
    Bug(
        "events-taken-away-are-never-forgotten",
        f"{FLOW}/supervisor/mod.rs",
        "state.taken = unknown.iter().copied().filter(|event| hello.busy.contains(event)).collect();\n",
        "state.taken.extend(unknown.iter().copied().filter(|event| hello.busy.contains(event)));\n",
    ),
    Bug(
        "a-readout-keeps-cleared-fragments",
        f"{NODE}/source.rs",
        "        self.held.remove(&event);\n        self.deleted.insert(event);\n",
        "        self.deleted.insert(event);\n",
    ),
]


# Reads the name of the acting bug once.
PLANTED = """
pub(crate) fn planted(name: &str) -> bool {
    static NAME: std::sync::LazyLock<String> =
        std::sync::LazyLock::new(|| std::env::var("FANIN_PLANTED").unwrap_or_default());
    *NAME == name
}
"""


def body_around(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the range of the body of the function around a range of a file that rustfmt has formatted."""
    opens = [
        found
        for found in re.finditer(r"^( *)(pub(\(\w+\))? )?fn \w", text[:start], re.MULTILINE)
        if re.search(rf"^{found[1]}}}$", text[found.end() : start], re.MULTILINE) is None
    ]
    indent = opens[-1][1]
    opened = re.compile(rf"^({indent}fn .*|{indent}pub.* fn .*|{indent}\).*|{indent}){{$", re.MULTILINE)
    begin = opened.search(text, opens[-1].start())
    closed = re.compile(rf"^{indent}}}$", re.MULTILINE).search(text, end)
    if begin is None or closed is None or begin.end() > start:
        sys.exit(f"no function is around this text: {text[start:end]}")
    return begin.end(), closed.start()


def mismatches(bugs: list[Bug]) -> list[str]:
    """Return a line for each bug that cannot be planted, because its file has changed."""
    lines = []
    for bug in bugs:
        path = ROOT / bug.path
        count = path.read_text().count(bug.old) if path.is_file() else 0
        if count != 1:
            lines.append(f"{bug.name}: the text to change is {count} times in {bug.path}")
    return lines


def planted(text: str, bugs: list[Bug]) -> str:
    """Return the text of a file with all its bugs, each of which acts if it is named."""
    bodies: dict[tuple[int, int], list[tuple[str, str]]] = {}
    for bug in bugs:
        at = text.index(bug.old)
        begin, end = body_around(text, at, at + len(bug.old))
        changed = text[begin:end].replace(bug.old, bug.new)
        bodies.setdefault((begin, end), []).append((bug.name, changed))
    for (begin, end), variants in sorted(bodies.items(), reverse=True):
        branches = "".join(f'if crate::planted("{name}") {{{body}}} else ' for name, body in variants)
        text = f"{text[:begin]}\n{branches}{{{text[begin:end]}}}\n{text[end:]}"
    return text


def build(profile: str) -> Path:
    """Build the program with all bugs, and return its path."""
    folder = ROOT / "target" / "planted"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    texts = {}
    for path in listed.stdout.split("\0"):
        # Crates include files of other folders, too.
        if path.endswith((".rs", ".toml", ".lock")) or path.startswith("crates/"):
            texts[path] = (ROOT / path).read_bytes()
    if wrong := mismatches(BUGS):
        sys.exit("\n".join(wrong))
    by_path: dict[str, list[Bug]] = {}
    for bug in BUGS:
        by_path.setdefault(bug.path, []).append(bug)
    for path, bugs in by_path.items():
        texts[path] = planted(texts[path].decode(), bugs).encode()
    for crate in sorted({path.rpartition("/src/")[0] for path in by_path}):
        path = f"{crate}/src/lib.rs"
        texts[path] = texts[path].replace(b"#![no_std]", b"") + PLANTED.encode()
    for path, content in texts.items():
        copy = folder / "tree" / path
        # An unchanged file keeps its time, so that cargo builds its crate once.
        if not copy.is_file() or copy.read_bytes() != content:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(content)
    command = ["cargo", "build", "--quiet", "--profile", profile, "--package", "fanin-world"]
    command += ["--target-dir", str(folder / "target")]
    built = subprocess.run(command, cwd=folder / "tree", text=True, capture_output=True, check=False)
    if built.returncode != 0:
        sys.exit(f"the program with all bugs does not build:\n{built.stderr}")
    return folder / "target" / ("debug" if profile == "dev" else profile) / "fanin-world"


def check(program: Path, bug: Bug, seeds: int, limit_s: float) -> str:
    """Play worlds with a bug until one fails, and return what came out."""
    command = [str(program), "campaign", "--seeds", str(seeds), "--failures", "1"]
    environment = {**os.environ, "FANIN_PLANTED": bug.name}
    start = time.monotonic()
    try:
        said = subprocess.run(
            command, env=environment, text=True, capture_output=True, check=False, timeout=limit_s
        )
    except subprocess.TimeoutExpired as expired:
        last = (expired.stderr or b"0").decode(errors="replace").splitlines()[-1]
        played = last.partition(" of ")[0]
        return f"| {bug.name} | **not found** in {played} seeds within {limit_s:.0f} s |"
    found = re.search(r"^seed (\d+) fails: (.*)$", said.stdout, re.MULTILINE)
    if found is None:
        return f"| {bug.name} | **not found** in {seeds} seeds |"
    # All smaller seeds have been played, too.
    needed = int(found[1]) + 1
    return f"| {bug.name} | {needed} seeds, {time.monotonic() - start:.0f} s | {found[2][:110]} |"


def write_table(lines: str) -> None:
    """Write the document's table of bugs and seeds, in the bugs' order, from printed lines."""
    said = dict(re.findall(r"^\| ([\w-]+) \| (.*?)(?: seeds.*)? \|", lines, re.MULTILINE))
    rows = [f"| {bug.name.replace('-', ' ')} | {said.get(bug.name, 'not played')} |\n" for bug in BUGS]
    head = "| bug | seeds |\n|---|---|\n"
    text, tables = re.subn(
        rf"{re.escape(head)}(\|.*\n)*", lambda _: head + "".join(rows), DOCUMENT.read_text()
    )
    if tables != 1:
        sys.exit(f"{DOCUMENT} has {tables} tables of bugs")
    DOCUMENT.write_text(text)


def main() -> None:
    """Check the bugs that were asked for, and say which were found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20_000)
    parser.add_argument("--limit", type=float, default=1800.0, help="seconds for the worlds of one bug")
    parser.add_argument("--profile", default="release", help="dev builds faster, and checks debug assertions")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--check", action="store_true", help="fail if a bug's text is not in its file once")
    parser.add_argument("--build", action="store_true", help="print the path of the built program")
    parser.add_argument("--table", type=Path, help="write the table from lines of an earlier call")
    arguments = parser.parse_args()
    bugs = [bug for bug in BUGS if not arguments.only or bug.name in arguments.only]
    if arguments.list:
        sys.stdout.writelines(f"{bug.name}: {bug.path}\n" for bug in bugs)
        return
    if arguments.check:
        sys.exit("\n".join(mismatches(bugs)) or 0)
    if arguments.table:
        write_table(arguments.table.read_text())
        return
    program = build(arguments.profile)
    if arguments.build:
        sys.stdout.write(f"{program}\n")
        return
    for bug in bugs:
        sys.stdout.write(check(program, bug, arguments.seeds, arguments.limit) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
