"""Quantities in Python agree with those of the scenario file."""

import pytest

import fanin


@pytest.mark.parametrize(
    ("quantity", "text", "value"),
    [
        (fanin.bytes, "1.1 kB", 1_100),
        (fanin.bytes, "64 KiB", 65_536),
        (fanin.duration, "200 ms", 200_000_000_000),
        (fanin.frequency, "2 kHz", 2_000_000),
        (fanin.packets, "2 packets", 2),
        (fanin.rate, "10 Gb/s", 10_000_000_000),
        (fanin.ratio, "0.25", 250_000),
    ],
)
def test_text_and_value_stand_for_each_other(quantity: fanin.Quantity, text: str, value: int) -> None:
    assert quantity(text) == value
    assert quantity.text(value) == text


@pytest.mark.parametrize("value", [0, 1, 999, 2_112_000, 2**53 + 1, 2**64 - 1])
def test_large_values_survive_exactly(value: int) -> None:
    assert fanin.bytes(fanin.bytes.text(value)) == value


def test_a_wrong_text_says_what_was_expected() -> None:
    with pytest.raises(ValueError, match=r'"12 KB": unknown unit .* did you mean kB\?'):
        fanin.bytes("12 KB")
    with pytest.raises(ValueError, match="finer than 1 B"):
        fanin.bytes("1.0001 kB")


def test_a_value_that_cannot_be_held_is_refused() -> None:
    with pytest.raises(OverflowError):
        fanin.bytes.text(2**64)
    with pytest.raises(OverflowError):
        fanin.bytes.text(-1)


def test_the_version_is_that_of_the_installed_package() -> None:
    from importlib.metadata import version

    assert fanin.__version__ == fanin.version == version("fanin")


def test_a_star_hides_no_built_in() -> None:
    import builtins

    names: dict[str, object] = {}
    exec("from fanin import *", names)
    assert "Scenario" in names
    assert not {name for name in names if hasattr(builtins, name)} - {"__builtins__", "__doc__"}
    assert not set(fanin.__all__) & set(dir(builtins))
