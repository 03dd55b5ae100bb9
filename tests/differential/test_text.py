"""The text form of a case: what is read, what is refused and where, and that nothing is lost on the way back."""

from __future__ import annotations

import json
import pathlib
import re

import pytest

from differential import compare, generate, run, simulate, text, variants
from support.documents import ROOT
from support.expected import Expected


@pytest.mark.parametrize("part", range(10))
def test_random_cases_come_back(part: int) -> None:
    """Each of 300 drawn cases is told as text, not as JSON; the text is read as the same case, and told the same."""
    for seed in range(part * 30, part * 30 + 30):
        case = generate.generate(seed, strict=seed % 3 == 0)
        told = text.tell(case)
        again = text.read(told).case
        assert again == text.plain(case), seed
        assert text.tell(again) == told


GRID = "darray 2 1 [4] [block] [default] [2] C INT"
FAILING = (
    "ranks 3 free | size 20 but [2] size 10 fails ARG or IO | write at_all 1,-1,0 NULL @0 fails TYPE or none"
    " | read at 4,-1,4 @0 fails COUNT by [1] | sync fails IO or none by some"
)
LOST = "ranks 3 file 9 | sync lost Irecv 1 fails IO | posix hidden 0"
DECLARED = (
    "a name: ranks 1 | sync | except native(openmpi) sub*: not\n  yet | only native subfiles gpu | skip gpu: no"
    " | shows rounds"
)
READ = [
    # One value stands for all ranks, a list has one for each, and an expression is computed for each.
    "ranks 3 file 99 readonly | read at 4 @8",
    "ranks 3 file 99 readonly | read at 4 @0,8,rank*4",
    "ranks 3 file 99 readonly | read at 4 @(1<<4)-rank%2",
    "ranks 3 file 99 readonly | read at 1,2,0 INT @0 by rank>0 large bottom [0 2]",
    # A type is a tree for each rank, with lists that repeat and count.
    "ranks 2 | view turns 24",
    "ranks 2 | view @rank*4 INT resized_c 0 40 indexed [2x1] [2x(i*2+rank)] INT",
    f"ranks 2 readonly file 99 | read all 1 struct [1 2] [0 8] {{INT f90_real 6 30}}, {GRID}",
    # A call with the classes of its error, and what other ranks call.
    FAILING,
    LOST,
    # Exceptions have a variant, perhaps a family, and a reason.
    DECLARED,
]


def test_what_is_read(expected: Expected) -> None:
    expected({words: [json.dumps(op) for op in text.read(words).case["ops"]] for words in READ})
    case, declared = text.read(FAILING).case, text.read(DECLARED)
    assert case["free"] and text.tell(case) == FAILING and text.tell(text.read(LOST).case) == LOST
    expected({name: getattr(declared, name) for name in ("name", "excepted", "skipped", "only", "shows")})
    known = [("native", "openmpi"), ("native", "mpich"), ("subfiles", "mpich")]
    assert [bool(variants.declared(declared, *each)) for each in known] == [True, False, True]
    assert [name for name in variants.VARIANTS if variants.runs_under(declared, name)] == ["native", "subfiles"]


WRONG = {
    "ranks 2 | write at 1000000000000 @0": "1:20: expected a number up to 1048576, found '1000000000000'",
    "ranks 2 | view vector 1<<30 1 2 INT": "1:23: expected a number up to 1048576, found '1<<30'",
    "ranks 2 | view indexed [1000000000x1] [0] INT": "1:25: expected a number, TIMESxNUMBER with TIMES up to 1048576",
    "ranks 2 | writ at 8 @0": "1:11: expected a call: .* found 'writ'",
    "ranks 2 |\n write at 8 @0,8,16": "2:17: expected one value, or one for each of 2 ranks, found ','",
    "ranks 2 | write at 8": "1:21: expected @OFFSET with at, found 'the end'",
    "ranks 2 | write all 8 @0": "1:25: expected no @OFFSET with all, found 'the end'",
    "ranks 2 | write all 8 @0 | sync": "1:26: expected no @OFFSET with all, found '|'",
    "ranks 2 | write at 8 @0,rank*y": "1:25: expected a number or an expression of rank, found 'rank.y'",
    "ranks 2 | view @0 INT vector 3 1 INT": "1:34: expected a number .* found 'INT'",
    "ranks 2 | view @0 LONG_INT": "1:19: expected a type: .* found 'LONG_INT'",
    "ranks 2 | sync now": "1:16: expected the end of the call, found 'now'",
    "ranks 2 colour blue | sync": "1:9: expected comm, .* found 'colour'",
    "ranks two": "1:7: expected a number, found 'two'",
    "rank 2": "1:1: expected 'ranks', found 'rank'",
    "ranks 2 | write at 8 @0 by 2": "1:29: expected ranks below 2 before this, found 'the end'",
    "ranks 2 | sync | except native": "1:18: expected 'except.skip VARIANT",
    "ranks 2 | only native | sync": "1:24: a call behind 'except', 'skip', 'only' or 'shows'",
    "ranks 2 | sync fails BLUE": "1:22: expected an error class: ACCESS, .* found 'BLUE'",
    "ranks 2 | delete 1": "1:11: no legal program: no file to delete: delete 1",
    "ranks 2 | write at 8 @0,8 | read at 8 @8,0": "1:29: no legal program: conflict without sync: read at 8 @8,0",
    "ranks 2 | write iat 8 @0,8 as 1": "1:32: no legal program: requests are left: the end",
    "ranks 2 | view @0 INT indexed [1 2] [0] INT": "1:11: no type or call that the model knows",
}


@pytest.mark.parametrize("words", WRONG)
def test_what_is_wrong_has_a_place(words: str) -> None:
    """File, line, column, the word there, and what was expected."""
    with pytest.raises(text.CaseError) as caught:
        text.read(words, "my.case")
    assert re.match(f"my.case:{WRONG[words]}".replace("found '|'", r"found '\|'"), str(caught.value)), caught.value


def test_a_file_of_cases(tmp_path: pathlib.Path) -> None:
    """Entries have continuation lines and the comment above them; names occur once."""
    path = tmp_path / "some.case"
    path.write_text("# head\n\n# a report\n# of two lines\none: ranks 2\n  | sync\ntwo: ranks 1 | fence\n")
    one, two = text.read_file(path)
    assert (one.name, one.source, one.where) == ("one", "a report of two lines", "some.case:5")
    assert (two.name, two.source, two.where) == ("two", "", "some.case:7")
    assert run.listed(str(path)) == [one.case | {"id": 0}, two.case | {"id": 1}]
    assert run.entry_of(f"{path}:two") == two
    with pytest.raises(text.CaseError, match="no case has the name 'ona', did you mean 'one'"):
        run.entry_of(f"{path}:ona")
    with pytest.raises(text.CaseError, match=r"gone\.case: there is no such file"):
        run.entry_of("gone.case:one")
    with pytest.raises(text.CaseError, match="no variant has the name cache or spwan: native, "):
        run.run_text("ranks 1 | sync | only cache", ["spwan"])
    for wrong, message in (("one: ranks 1\none: ranks 1", "2:1: the name"), ("ranks 1", "1:1: expected 'NAME")):
        path.write_text(wrong)
        with pytest.raises(text.CaseError, match=message):
            text.read_file(path)


def unindented(page: str) -> str:
    return "\n".join(line.lstrip() for line in page.splitlines()) + "\n"


def test_rows_of_an_entry(tmp_path: pathlib.Path) -> None:
    """An entry has a case for each row, with the row's words in the place of ROW and with the lines of the file."""
    path = tmp_path / "rows.case"
    path.write_text("# a report\none: ranks ROW\n  with a pair: 2\n  with four: 4\n  | write at ROW @rank*ROW\n")
    assert [(entry.name, entry.where, entry.source) for entry in text.read_file(path)] == [
        ("one, a pair", "rows.case:2", "a report"),
        ("one, four", "rows.case:2", "a report"),
    ]
    assert run.entry_of(f"{path}:one, four").case == text.read("ranks 4 | write at 4 @rank*4").case
    path.write_text(path.read_text().replace("four: 4", "none: 0"))
    with pytest.raises(text.CaseError, match=r"rows\.case:2:18: expected 1 to 64 ranks"):
        text.read_file(path)
    path.write_text("one: ranks ROW\n  with a pair: 2\n  | sink\n")
    with pytest.raises(text.CaseError, match=r"rows\.case:3:5: expected a call"):
        text.read_file(path)
    path.write_text("one: ranks 2\n  with a pair: 2\n  | sync\n")
    with pytest.raises(text.CaseError, match="one: has rows, and no ROW"):
        text.read_file(path)


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/project/testing.md"])
def test_entries_of_pages_are_those_of_files(page: str) -> None:
    """What a page prints under the name of an entry is the entry."""
    files = unindented("\n".join(path.read_text("utf-8") for path in text.FOLDER.glob("*.case")))
    found = re.findall(r"```text\n(.*?: ranks .*?)```", unindented((ROOT / page).read_text("utf-8")), re.DOTALL)
    entries = [entry for entry in found if f"\n{entry.partition(': ranks')[0].splitlines()[-1]}: ranks" in files]
    assert entries
    for entry in entries:
        assert entry in files


def test_a_list_of_cases(tmp_path: pathlib.Path) -> None:
    """Lines of one file are text or JSON."""
    case = generate.generate(11)
    path = tmp_path / "cases"
    path.write_text(f"{json.dumps(case)}\n{text.tell(case)}\n")
    first, second = run.listed(str(path))
    assert text.plain(first) == text.plain(second)


def test_the_case_that_failed_last(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failing test leaves it for ``--last``."""
    monkeypatch.setattr(text, "LAST", tmp_path / "build" / "last.json")
    with pytest.raises(text.CaseError, match="no case has failed"):
        text.last_failed()
    text.keep_failed(text.read("one: ranks 2 |\n sync"), "direct")
    assert text.last_failed() == ("one: ranks 2 | sync", ["direct"])


@pytest.mark.parametrize(
    ("write", "sync", "arrived", "right"),
    [
        ("none", "none", True, True),
        ("none", "none", False, False),  # lost without an error
        ("IO", "none", False, True),
        ("none", "IO", False, True),
    ],
)
def test_a_byte_is_lost_with_an_error_only(write: str, sync: str, arrived: bool, right: bool) -> None:
    case = text.read("ranks 1 fault op=write,errno=EIO | write at 4 @0 fails IO or none | sync fails IO or none").case
    held = simulate.Simulation(case)
    held.run()
    results = [{} if found == "none" else {"class": found} for found in (write, sync)]
    found = compare.Comparison(case, [results], strict=True).run(
        {"0": held.files["0"].data.tobytes() if arrived else b""}
    )
    assert (not found) == right, found


@pytest.mark.parametrize(
    ("classes", "right"), [(["IO", "none"], True), (["none", "none"], False), (["IO", "ARG"], False)]
)
def test_an_error_of_some_ranks_is_demanded(classes: list[str], right: bool) -> None:
    case = text.read("ranks 2 | sync fails IO by some").case
    results = [[{} if found == "none" else {"class": found}] for found in classes]
    found = compare.Comparison(case, results, strict=True).run({"0": b""})
    assert (not found) == right, found


def test_outcomes_are_as_declared() -> None:
    entry = text.read("ranks 2 | sync | except native(openmpi): OMPIO is wrong | except delegats: none")
    assert variants.unknown(entry) == ["delegats"]
    assert variants.outcome(entry, "native", "openmpi", ["a"]) == ("deviates as declared: OMPIO is wrong", True)
    assert variants.outcome(entry, "native", "openmpi", []) == ("does not deviate: remove 'except native'", False)
    assert variants.outcome(entry, "native", "mpich", ["a"]) == ("a", False)
    assert variants.outcome(entry, "default", "openmpi", []) == ("ok", True)


def test_the_first_byte() -> None:
    problem = (
        "file: 3 of 9 bytes of file 0 differ, the first at 4, the last at 8; there are 11 12 for 21 22, 0 are a5 as"
        " stale buffers"
    )
    assert variants.first_byte(problem) == "file 0: byte 4 is 0x11, expected 0x21"
    problem = "buffer: call 1 (read at) rank 1: 8 bytes differ, the first at 64 of 136; there are 01 for 02"
    assert variants.first_byte(problem) == "call 1 (read at) rank 1, buffer: byte 0 is 0x01, expected 0x02"
    problem = "hang: rank 0 stood at call 2, sync\nrank 1 stood at call 1, read at\nstatus 1, with many\nother lines"
    assert variants.first_byte(problem) == "hang: rank 0 stood at call 2, sync, rank 1 stood at call 1, read at"
    assert variants.first_byte("size: file 0 has 3 bytes, expected 4") == "size: file 0 has 3 bytes, expected 4"
