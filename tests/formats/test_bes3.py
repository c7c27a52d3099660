"""pybes3, the reader of BESIII's own users, judges what we read of BESIII's raw data and what we write."""

import gzip
import json
import struct
from pathlib import Path
from typing import Any

import awkward
import h5py
import pybes3
import pytest
from strangers import fanin

EVENT_MARKER, DETECTOR_MARKER, ROS_MARKER = 0xAA1234AA, 0xBB1234BB, 0xCC1234CC
EVENT_RECORD = 0x1234CCCC
VERSION = 0x3000000
# The file's records before its events, and the one behind them.
HEAD_BYTES, TAIL_BYTES = 92, 40
HEADER_FIELDS = ("evt_time", "evt_no", "run_no", "l1_id", "evt_tag1", "evt_tag2", "evt_tag3", "evt_tag4")


@pytest.fixture
def raw(root: Path, tmp_path: Path) -> Path:
    """Return the sample as BESIII wrote it."""
    path = tmp_path / "bes3.raw"
    path.write_bytes(gzip.decompress((root / "crates/events/sample/bes3_run91668.raw.gz").read_bytes()))
    return path


def decoded(path: Path) -> Any:
    """Return the hits of all detectors, event by event, as pybes3 finds them."""
    return pybes3.concatenate_raw(str(path))


def fragment(marker: int, source: int, own: list[int], content: bytes) -> bytes:
    """Return a fragment of event format 3: seven words and those of its level, a status word among them."""
    header = 8 + len(own)
    words = [marker, header + len(content) // 4, header, VERSION, source, 1, 0, len(own), *own]
    return struct.pack(f"<{len(words)}I", *words) + content


def rebuilt(columns: Path, original: bytes, headers: list[dict[str, int]]) -> bytes:
    """Return a BESIII file of the fragments in our HDF5, each detector in a read-out system of its own."""
    with h5py.File(columns) as file:
        fragments, starts = file["fragment_start"][:], file["byte_start"][:]
        sources, data = file["source"][:], file["bytes"][:].tobytes()
    out = original[:HEAD_BYTES]
    for number, header in enumerate(headers):
        detectors: dict[int, bytes] = {}
        for index in range(fragments[number], fragments[number + 1]):
            detector = int(sources[index]) >> 16
            detectors[detector] = detectors.get(detector, b"") + data[starts[index] : starts[index + 1]]
        content = b"".join(
            fragment(DETECTOR_MARKER, name << 16, [], fragment(ROS_MARKER, name << 16, [0, 0, 0], robs))
            for name, robs in detectors.items()
        )
        own = [header[field] for field in HEADER_FIELDS]
        event = fragment(EVENT_MARKER, 0, [*own[:4], 0, 0, *own[4:]], content)
        out += struct.pack("<4I", EVENT_RECORD, 4, number, len(event)) + event
    return out + original[-TAIL_BYTES:]


def test_events_and_runs_are_those_of_pybes3(raw: Path, tmp_path: Path) -> None:
    headers = decoded(raw).evt_header
    fanin("events", "convert", raw, tmp_path / "columns.h5")
    with h5py.File(tmp_path / "columns.h5") as file:
        assert file["l1_id"][:].tolist() == headers.l1_id.to_list() == headers.evt_no.to_list()
        assert file["run"][:].tolist() == headers.run_no.to_list()
    described = json.loads(fanin("events", "info", raw, "--json", "-"))
    assert (described["events"], described["runs"]) == (len(headers), sorted(set(headers.run_no.to_list())))
    assert described["l1_ids"] == [min(headers.l1_id), max(headers.l1_id)]


@pytest.mark.parametrize("way", ["direct", "through ATLAS format 4", "through the plain container"])
def test_pybes3_finds_every_hit_in_the_fragments_that_we_cut(raw: Path, way: str, tmp_path: Path) -> None:
    source = raw
    if way != "direct":
        source = tmp_path / ("bes3.data" if "ATLAS" in way else "bes3.frag")
        fanin("events", "convert", raw, source)
    fanin("events", "convert", source, tmp_path / "columns.h5")
    before = decoded(raw)
    again = tmp_path / "again.raw"
    again.write_bytes(rebuilt(tmp_path / "columns.h5", raw.read_bytes(), before.evt_header.to_list()))
    after = decoded(again)
    assert after.fields == before.fields
    for detector in before.fields:
        assert awkward.array_equal(after[detector], before[detector]), detector
    detectors = set(before.fields) - {"evt_header"}
    hits = {detector: int(awkward.sum(awkward.num(before[detector]))) for detector in detectors}
    assert min(hits.values()) > 50, hits


def test_pybes3_reads_our_file_records(raw: Path, tmp_path: Path) -> None:
    ours = tmp_path / "bes3.data"
    fanin("events", "convert", raw, ours)
    with pybes3.open_raw(str(raw)) as theirs:
        expected = (theirs.entries, theirs.run_number)
    with pybes3.open_raw(str(ours)) as reader:
        assert (reader.entries, reader.run_number, reader.file_name) == (*expected, "fanin")
        # It knows event format 3 alone, whose run parameters are a word shorter. We write format 4.
        with pytest.raises(RuntimeError, match="Invalid event"):
            reader.arrays()
