"""The hints registry, the grammars of MPIOX_HINTS and hints files, precedence, reports, and the Python class."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpiio_ext import hints
from mpiio_ext.errors import ArgumentError, MpiioExtError
from mpiio_ext.hints import Hints

ROOT = pathlib.Path(__file__).resolve().parents[2]
VARIABLES = (
    "MPIOX_HINTS",
    "MPIOX_HINTS_FILE",
    "MPIOX_SITE_FILE",
    "MPIOX_STATS",
    "MPIOX_RANKS_PER_NODE",
    "ROMIO_HINTS",
    "MPICH_MPIIO_HINTS",
)


@pytest.fixture(autouse=True)
def no_site_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    empty = tmp_path / "empty.conf"
    empty.write_text("", encoding="utf-8")
    monkeypatch.setenv("MPIOX_SITE_FILE", str(empty))


def in_force(path: str = "") -> dict[str, str]:
    return {item.spec.name: item.value for item in hints.in_force(path)}


def sources(path: str = "") -> dict[str, str]:
    return {item.spec.name: item.source for item in hints.in_force(path) if item.source != "default"}


# ---- registry -------------------------------------------------------------------------------------------------------


def test_defaults_are_their_own_standard_form() -> None:
    for item in hints.in_force():
        assert item.source == "default"
        assert item.value == item.spec.default


def test_names_are_unique_and_described() -> None:
    names = [spec.name for spec in hints.registry()]
    assert len(names) == len(set(names)) >= 16
    for spec in hints.registry():
        assert spec.description and spec.values
        assert spec.type in {"boolean", "integer", "bytes", "choice", "text"}


def test_partition_follows_the_registry_of_methods() -> None:
    from mpiio_ext._binding import ffi, lib

    methods = [ffi.string(lib.mpiio_ext_partition_name(i)).decode() for i in range(lib.mpiio_ext_partition_count())]
    spec = next(spec for spec in hints.registry() if spec.name == "mpiox_partition")
    assert spec.values == " | ".join(["auto", *methods])
    for method in ("auto", *methods):
        hints.check("mpiox_partition", method)


def test_documentation_has_the_registry() -> None:
    text = (ROOT / "docs" / "reference" / "hints.md").read_text(encoding="utf-8")
    assert hints.markdown_table() in text, (
        "docs/reference/hints.md is out of date: paste the output of `mpiio-ext hints --markdown`"
    )


#: A size that no memory has, and one that only just fits 64 bits.
ABSURD = ("8000000000g", str(2**63 - 1))


def bounds_of(spec: hints.HintSpec) -> tuple[int, int]:
    """Return the smallest and the largest value that a number's description names; a hint without them fails."""
    if spec.type == "integer":
        found = re.fullmatch(r"(-?\d+) \.\. (\d+)", spec.values)
        assert found, f"{spec.name}: no bounds in {spec.values!r}"
        return int(found[1]), int(found[2])
    found = re.match(r"(1 or more )?bytes up to (\d+)([mgt]), ", spec.values)
    assert found, f"{spec.name}: no bounds in {spec.values!r}"
    return (1 if found[1] else 0), int(found[2]) << {"m": 20, "g": 30, "t": 40}[found[3]]


@pytest.mark.parametrize("spec", [s for s in hints.registry() if s.type in ("integer", "bytes")], ids=lambda s: s.name)
def test_numbers_have_bounds(monkeypatch: pytest.MonkeyPatch, spec: hints.HintSpec) -> None:
    """The smallest and the largest value hold without a word; beyond, one line, and a value within the bounds."""
    least, most = bounds_of(spec)
    for value in (least, most):
        monkeypatch.setenv("MPIOX_HINTS", f"*:{spec.name}={value}")
        assert in_force()[spec.name] == str(value)
        assert not hints.problems()
    for text in (str(most + 1), str(least - 1), *ABSURD):
        monkeypatch.setenv("MPIOX_HINTS", f"*:{spec.name}={text}")
        assert least <= int(in_force()[spec.name]) <= most
        assert len(hints.problems()) == 1 and spec.name in hints.problems()[0], hints.problems()


def test_collected_writes_fit_a_message() -> None:
    """The server takes messages of 1 GiB; what a rank collects for it is a fraction of that."""
    (spec,) = (spec for spec in hints.registry() if spec.name == "mpiox_delegate_write_behind")
    assert bounds_of(spec)[1] <= 1 << 28


@pytest.mark.parametrize("spec", hints.registry(), ids=lambda spec: spec.name)
def test_the_class_has_every_hint(spec: hints.HintSpec) -> None:
    """An argument, an attribute, and the pair that the program gets."""
    name, value = spec.name.removeprefix("mpiox_"), spec.default or "value"
    if spec.name == "cb_config_list":
        value = "*:1"
    given = Hints(**{name: value})
    assert getattr(given, name) == value
    assert given.items() == {spec.name: value}
    assert getattr(Hints(), name) is None


# ---- values ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("4096", 4096),
        ("64k", 65536),
        ("64K", 65536),
        ("1M", 1 << 20),
        ("1MiB", 1 << 20),
        ("1mb", 10**6),
        ("1Mi", 1 << 20),
        ("3G", 3 << 30),
        ("2t", 2 << 40),
        ("100b", 100),
        ("8191P", 8191 << 50),
    ],
)
def test_sizes(monkeypatch: pytest.MonkeyPatch, text: str, size: int) -> None:
    monkeypatch.setenv("MPIOX_HINTS", f"cb_buffer_size={text}")
    assert in_force()["cb_buffer_size"] == str(min(size, 1 << 30))  # the most that it can be
    assert size <= 1 << 30 or f"({size} bytes)" in hints.problems()[0]


@pytest.mark.parametrize(
    "text", ["", "-1", "1.5M", "M", "1X", "1Mib/s", "9000P", "99999999999999999999", "1 M", "8E", "17e", "17EiB"]
)
def test_bad_sizes(text: str) -> None:
    with pytest.raises(ArgumentError, match="cb_buffer_size has the bad value"):
        hints.check("cb_buffer_size", text)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("mpiox_enable", ["true", "FALSE", "1", "off", "yes", "disable", "Enabled", "disabled"], ["", "2", "maybe"]),
        ("mpiox_partition", ["auto", "even"], ["evn", "EVEN", ""]),
        ("mpiox_exchange", ["auto", "two_phase", "direct"], ["both"]),
        ("mpiox_io_rank", ["any", "owner"], ["all"]),
        ("mpiox_coherence", ["auto", "refresh", "native"], ["none"]),
        ("mpiox_buffers", ["2", "64"], ["1", "65", "two"]),
        ("mpiox_delegate_ack", ["memory", "replica", "disk"], ["none"]),
        ("cb_nodes", ["0", "2147483647"], ["-1", "2147483648", "4x"]),
        ("romio_cb_write", ["enable", "disable", "automatic"], ["true"]),
        (
            "cb_config_list",
            ["*:*", "*:2", "*", "host1:2,host2:1", "n-1.site.org:*,*:1", "a,b,c:0", ""],
            [
                "x" * 256,
                ",",
                "a,,b",
                "a,",
                ":",
                "a:",
                ":2",
                "a:b",
                "*:-1",
                "*:2x",
                "a:2:3",
                "*:**",
                "a:2, b:1",
                "a b",
                "a;b",
                "n*:2",
                "a=b",
            ],
        ),
        (
            "mpiox_delegates",
            ["0", "576", "1%", "100%", "per_node=0", "per_node=2"],
            ["0%", "101%", "577", "-1", "+1", " 1", "per_node=", "per_node=-1", "per_node=1%", "%", "1%%", "all", ""],
        ),
    ],
)
def test_allowed_values(name: str, good: list[str], bad: list[str]) -> None:
    for value in good:
        hints.check(name, value)
    for value in bad:
        with pytest.raises(ArgumentError, match=name):
            hints.check(name, value)


# ---- the nearest name -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("cb_nods", "cb_nodes"),
        ("cb_ndoes", "cb_nodes"),
        ("partition", "mpiox_partition"),
        ("mpiox_partion", "mpiox_partition"),
        ("mpiox_stripesize_io", "mpiox_stripe_size_io"),
        ("stripping_unit", "striping_unit"),
        ("romio_ds_wirte", "romio_ds_write"),
        ("partion", "mpiox_partition"),
    ],
)
def test_nearest_name(wrong: str, right: str) -> None:
    with pytest.raises(ArgumentError, match=f"{wrong} does not exist; did you mean {right}\\?"):
        hints.check(wrong, "1")


def test_no_nearest_name() -> None:
    with pytest.raises(ArgumentError, match=r"hint entirely_different_thing does not exist$"):
        hints.check("entirely_different_thing", "1")
    with pytest.raises(MpiioExtError):
        hints.check("x" * 500, "1")


def test_hints_of_the_mpi_library_pass() -> None:
    hints.check("romio_no_indep_rw", "anything")
    hints.check("cb_block_size", "4M")


# ---- the grammar of MPIOX_HINTS --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        ("cb_nodes=8", "x", {"cb_nodes": "8"}),
        ("cb_nodes=8:striping_unit=1M", "x", {"cb_nodes": "8", "striping_unit": "1048576"}),
        (
            "*.h5:mpiox_partition=even:cb_nodes=8,*:striping_unit=1M",
            "a.h5",
            {"mpiox_partition": "even", "cb_nodes": "8", "striping_unit": "1048576"},
        ),
        ("*.h5:mpiox_partition=even:cb_nodes=8,*:striping_unit=1M", "a.nc", {"striping_unit": "1048576"}),
        ("*:cb_nodes=1,*.h5:cb_nodes=2", "/scratch/run/a.h5", {"cb_nodes": "2"}),
        ("*.h5:cb_nodes=2,*:cb_nodes=1", "/scratch/run/a.h5", {"cb_nodes": "1"}),
        ("/scratch/*:cb_nodes=3", "/scratch/run/a.h5", {"cb_nodes": "3"}),
        ("run/*:cb_nodes=3", "/scratch/run/a.h5", {}),
        ("a.h[56]:cb_nodes=3", "/scratch/a.h5", {"cb_nodes": "3"}),
        # values that hold separators
        ("*:cb_config_list=*:*", "x", {"cb_config_list": "*:*"}),
        ("*:cb_config_list=*:*:cb_nodes=4", "x", {"cb_config_list": "*:*", "cb_nodes": "4"}),
        ("*:cb_config_list=*:*,*.h5:cb_nodes=4", "x.h5", {"cb_config_list": "*:*", "cb_nodes": "4"}),
        ("*:cb_config_list=a:2,b:1:cb_nodes=4", "x", {"cb_config_list": "a:2,b:1", "cb_nodes": "4"}),
        ('*:cb_config_list="a,b":cb_nodes=4', "x", {"cb_config_list": "a,b", "cb_nodes": "4"}),
        (
            '*:mpiox_delegate_hosts="a:cb_nodes=1":cb_nodes=4',
            "x",
            {"mpiox_delegate_hosts": "a:cb_nodes=1", "cb_nodes": "4"},
        ),
        (r"*:cb_config_list=a\,b:cb_nodes=4", "x", {"cb_config_list": "a,b", "cb_nodes": "4"}),
        (r"*:mpiox_delegate_hosts=a\:cb_nodes=4", "x", {"mpiox_delegate_hosts": "a:cb_nodes=4"}),
        (r'*:mpiox_delegate_hosts="a\"b\\c"', "x", {"mpiox_delegate_hosts": 'a"b\\c'}),
        # patterns that hold separators
        ('"a:b,c=d":cb_nodes=4', "a:b,c=d", {"cb_nodes": "4"}),
        (r"a\:b:cb_nodes=4", "a:b", {"cb_nodes": "4"}),
        # blanks and empty parts
        (" *.h5 : cb_nodes = 8 , * : striping_unit = 1M ", "a.h5", {"cb_nodes": "8", "striping_unit": "1048576"}),
        ("cb_nodes=8,", "x", {"cb_nodes": "8"}),
        ("", "x", {}),
        ("cb_nodes=8,striping_factor=2", "x", {"cb_nodes": "8", "striping_factor": "2"}),
    ],
)
def test_grammar(monkeypatch: pytest.MonkeyPatch, text: str, path: str, expected: dict[str, str]) -> None:
    monkeypatch.setenv("MPIOX_HINTS", text)
    found = in_force(path)
    assert {name: found[name] for name in sources(path)} == expected
    assert hints.problems(path) == ()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("*.h5", "expected GLOB:NAME=VALUE"),
        ("*.h5:", "expected NAME=VALUE"),
        (":cb_nodes=1", "expected GLOB:NAME=VALUE"),
        ('*:cb_config_list="abc', "quote not closed"),
        ("cb_nodes=x", "bad value"),
        ("cb_node=4", "did you mean cb_nodes"),
        ("cb_nodes=" + "4" * 2000, "too long"),
    ],
)
def test_ill_formed_text_is_reported_and_ignored(monkeypatch: pytest.MonkeyPatch, text: str, problem: str) -> None:
    monkeypatch.setenv("MPIOX_HINTS", text)
    assert sources("a.h5") == {}
    (line,) = hints.problems("a.h5")
    assert line.startswith("MPIOX_HINTS: ")
    assert problem in line


def test_good_parts_around_a_bad_one_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPIOX_HINTS", "cb_nodes=4:cb_bufer_size=1M:striping_factor=3")
    assert sources() == {"cb_nodes": "MPIOX_HINTS", "striping_factor": "MPIOX_HINTS"}


@given(
    pattern=st.text(string.ascii_letters + string.digits + '._:,=\\" ', min_size=1).filter(
        lambda text: text.strip() == text
    ),
    value=st.text(string.ascii_letters + string.digits + '.*:,=\\" #;[]', min_size=1, max_size=100),
)
def test_quoting_is_undone_by_the_parser(pattern: str, value: str) -> None:
    text = f"{hints.quote(pattern)}:mpiox_delegate_hosts={hints.quote(value)}:cb_nodes=5,other:cb_nodes=6"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MPIOX_HINTS", text)
        if "\\" in pattern or pattern == "other":  # a backslash also means something to fnmatch
            return
        found = in_force(pattern)
    assert found["mpiox_delegate_hosts"] == value
    assert found["cb_nodes"] == "5"


@given(st.binary(max_size=300).filter(lambda text: b"\0" not in text))
def test_no_text_breaks_the_parser(text: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MPIOX_HINTS", text.decode("utf-8", "surrogateescape"))
        assert len(hints.in_force("a.h5")) == len(hints.registry())


# ---- files ----------------------------------------------------------------------------------------------------------


def test_file(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "hints.conf"
    file.write_text(
        "# for every file\n"
        "cb_nodes = 2\n"
        "\n"
        "[*.h5]\n"
        "  cb_nodes=4 # more of them\n"
        '  mpiox_delegate_hosts = "*:* # not a comment"\n'
        "[*.[hn][5c]]\n"
        "striping_factor = 8\n"
        "; another comment\n"
        "[*.nc]\n"
        "cb_nodes = 6\n"
        "mpiox_delegate_hosts = a#b;c\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("MPIOX_HINTS_FILE", str(file))
    assert hints.problems() == ()
    found = in_force("/a/b.h5")
    assert (found["cb_nodes"], found["striping_factor"]) == ("4", "8")
    assert found["mpiox_delegate_hosts"] == "*:* # not a comment"
    assert in_force("b.nc")["cb_nodes"] == "6"
    assert in_force("b.nc")["mpiox_delegate_hosts"] == "a#b;c"  # a comment begins the line, or follows a blank
    assert in_force("b.txt")["cb_nodes"] == "2"
    assert in_force("b.txt")["striping_factor"] == "0"


def test_file_problems_have_line_numbers(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "hints.conf"
    file.write_text("cb_nodes = 2\nnonsense\ncb_nodes = many\n[*.h5\nmpiox_parttion = even\n", encoding="utf-8")
    monkeypatch.setenv("MPIOX_HINTS_FILE", str(file))
    lines = hints.problems()
    assert [line.split(": ")[0] for line in lines] == [f"{file}:{number}" for number in (2, 3, 4, 5)]
    assert "did you mean mpiox_partition?" in lines[3]
    assert in_force()["cb_nodes"] == "2"


def test_missing_files(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setenv("MPIOX_HINTS_FILE", str(tmp_path / "none"))
    (line,) = hints.problems()
    assert "cannot be read: No such file" in line
    monkeypatch.setenv("MPIOX_HINTS_FILE", str(tmp_path))
    (line,) = hints.problems()
    assert line.endswith("cannot be read: Is a directory")
    monkeypatch.setenv("MPIOX_SITE_FILE", str(tmp_path / "none as well"))
    assert len(hints.problems()) == 2


# ---- precedence -----------------------------------------------------------------------------------------------------


def test_precedence(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    site, file = tmp_path / "site", tmp_path / "file"
    site.write_text("cb_nodes=1\nstriping_factor=1\nmpiox_buffers=3\n", encoding="utf-8")
    file.write_text("cb_nodes=2\nstriping_factor=2\n", encoding="utf-8")
    monkeypatch.setenv("MPIOX_SITE_FILE", str(site))
    monkeypatch.setenv("MPIOX_HINTS_FILE", str(file))
    monkeypatch.setenv("MPIOX_HINTS", "*:cb_nodes=3")
    found = in_force()
    assert (found["mpiox_buffers"], found["striping_factor"], found["cb_nodes"]) == ("3", "2", "3")
    assert sources() == {"mpiox_buffers": "site file", "striping_factor": "MPIOX_HINTS_FILE", "cb_nodes": "MPIOX_HINTS"}


def test_variables_that_set_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPIOX_STATS", "1")
    monkeypatch.setenv("MPIOX_RANKS_PER_NODE", "2")
    found = in_force()
    assert (found["mpiox_stats"], found["mpiox_ranks_per_node"]) == ("true", "2")
    assert sources() == {}
    monkeypatch.setenv("MPIOX_HINTS", "mpiox_stats=false")
    assert in_force()["mpiox_stats"] == "false"
    monkeypatch.setenv("MPIOX_STATS", "perhaps")
    (line,) = hints.problems()
    assert line.startswith("MPIOX_STATS: ")


# ---- the Python class ------------------------------------------------------------------------------------------------


def test_items_and_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = Hints(
        partition="even", stats=True, cb_buffer_size="4M", cb_config_list="*:*", others={"romio_no_indep_rw": "x"}
    )
    assert wanted.items() == {
        "mpiox_partition": "even",
        "mpiox_stats": "true",
        "cb_buffer_size": "4194304",
        "cb_config_list": "*:*",
        "romio_no_indep_rw": "x",
    }
    monkeypatch.setenv("MPIOX_HINTS", wanted.environment("*.h5"))
    assert hints.problems() == ()
    found = in_force("a.h5")
    assert {name: found[name] for name in wanted.items() if name in found} == {
        name: value for name, value in wanted.items().items() if name in found
    }
    assert sources("a.nc") == {}
    assert Hints().environment() == ""


def test_frozen_and_checked() -> None:
    with pytest.raises(ArgumentError, match="mpiox_partition has the bad value"):
        Hints(partition="evn")
    with pytest.raises(ArgumentError, match="did you mean cb_nodes"):
        Hints(others={"cb_nods": "1"})
    with pytest.raises(ArgumentError, match="line break"):
        Hints(delegate_hosts="a\nb")
    with pytest.raises(TypeError, match=r"cb_node is no argument of Hints; did you mean cb_nodes\?"):
        Hints(cb_node=4)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"mpiox_buffers is no argument of Hints; did you mean buffers\?"):
        Hints(mpiox_buffers=4)
    with pytest.raises(TypeError):
        Hints("even")  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        Hints().partition = "even"  # type: ignore[misc]
