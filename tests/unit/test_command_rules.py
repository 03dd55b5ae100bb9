"""What goes for every command: exit status 2 where what is given cannot be used, and one meaning of ``--json``."""

from __future__ import annotations

import contextlib
import pathlib
import re
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from mpiio_ext.cli import main
from mpiio_ext.common.commands import Command, Group, refuse_repetitions
from support.commands import COMMANDS
from support.launch import ROOT

PRODUCT = ("mpiio_ext", "analytics", "delegates", "partitioning", "pioneer")

#: Command -> words that it cannot use. `text` is a file that is none of any format, `none` is not there.
UNUSABLE = {
    "run": "--hint cb_nods=1 -- true",
    "doctor": "--timeout soon",
    "top": "--interval never",
    "hints": "cb_nods",
    "layout": "none",
    "subfiles merge": "text",
    "subfiles check": "text",
    "subfiles rm": "text",
    "subfiles mount": "text text",
    "bench": "--dry-run --workload nosuch",
    "bench compare": "--path none",
    "bench explore": "--pattern nosuch",
    "bench arbitration": "--output text/folder",
    "bench report": "text",
    "tune": "--hints-file none -- true",
    "advise": "-o none/x.hints -- true",
    "trace": "-o text/folder -- true",
    "pioneer all": "none -o out",
    "pioneer path": "text -o out.parquet",
    "pioneer show": "text",
    "pioneer timeline": "text -o out.json",
    "pioneer profile": "text -o out.json",
    "pioneer check": "text",
    "pioneer synthesize": "text -o out.parquet",
    "pioneer replay": "text",
    "pioneer compare": "text text",
    "pioneer fidelity": "text",
    "analyze": "--nosuch",
    "analyze init": "text",
    "analyze manifest": "--setup text",
    "analyze place": "--setup text",
    "analyze query": "darshan_job --setup text",
    "analyze report": "--setup text",
    "analyze job": "1 --setup text",
    "analyze logs": "text",
    "analyze applications": "--setup text",
    "analyze sequential": "--setup text",
    "analyze read-ratio": "--setup text",
    "analyze sharing": "--setup text",
    "analyze middleware": "--setup text",
    "analyze striping": "--setup text",
    "analyze root-causes": "--setup text",
    "analyze interference": "--setup text",
    "analyze methods": "--results text --slower even --faster auto",
    "analyze summarize-job": "text",
    "analyze umami": "--history text --job 1",
    "analyze climate": "text",
    "analyze connector list": "--nosuch",
    "analyze connector columns": "nosuch",
    "analyze connector convert": "text out.parquet",
    "analyze connector show": "text",
    "analyze connector site": "text",
    "delegates wait": "--timeout never",
    "delegates recover": "none",
    "delegates status": "--interval never",
    "delegates arbiter": "--dir text/folder --io-nodes 4",
    "delegates arbiter slurm-watch": "--dir none",
    "delegates arbitrate compare": "--jobs text",
    "delegates arbitrate curves": "--forge text",
    "delegates arbitrate queue": "--forge text",
    "delegates arbitrate simulate": "--forge text",
    "delegates arbitrate solve": "--jobs text --io-nodes 4",
    "locks": "--servers 2 --aggregators 2 --region 1M --method nosuch",
    "partitioning": "--servers 2 --aggregators 2 --stripes 4 --plot none/x.svg",
    "report": "nosuch.darshan",
    "help": "nosuch",
    "completion": "nosuch",
}
#: What starts MPI before it looks, or ends it: not in the process of the tests.
STARTS_MPI = re.compile(r"pioneer replay|bench( -| explor)")


def invoked(words: str) -> tuple[int, str, str]:
    """Return the status of a command, and what it prints to both outputs."""
    if STARTS_MPI.match(words):
        command = [sys.executable, "-m", "mpiio_ext", *words.split()]
        child = subprocess.run(command, capture_output=True, text=True, timeout=120)
        return child.returncode, child.stdout, child.stderr
    done = CliRunner().invoke(main, words.split())
    return done.exit_code, done.stdout, done.stderr


def test_no_command_is_left_out() -> None:
    assert set(UNUSABLE) == set(COMMANDS)


def test_json_is_a_flag_everywhere() -> None:
    found = {(words, option.opts[-1]): option for words, command in COMMANDS.items() for option in command.params}
    flags = [option for (_, name), option in found.items() if name == "--json"]
    assert len(flags) > 20 and all(isinstance(flag, click.Option) and flag.is_flag for flag in flags)


def test_commands_without_json_print_no_results() -> None:
    """Their result is a file, a text for another program, what a program prints that they start, or their status."""
    flagged = {words for words, command in COMMANDS.items() if any("--json" in one.opts for one in command.params)}
    files = {
        "report",
        "bench",
        "bench explore",
        "pioneer all",
        "pioneer timeline",
        "pioneer path",
        "pioneer profile",
        "pioneer synthesize",
        "analyze",
        "analyze init",
        "analyze report",
        "analyze connector convert",
        "analyze connector site",
        "subfiles merge",
    }
    texts = {"completion", "help"}
    programs = {"run", "trace", "pioneer replay", "delegates arbiter", "delegates arbiter slurm-watch"}
    status = {"subfiles rm", "subfiles mount"}
    assert set(COMMANDS) - flagged == files | texts | programs | status


@pytest.mark.parametrize(
    ("words", "near"),
    [
        ("benhc", "bench"),
        ("bench explor", "explore"),
        ("pioneer chek", "check"),
        ("delegates arbitrate simulat", "simulate"),
        ("bench compare --pattern inter409", "inter4096"),
        ("bench explore --pattern sharde", "shared"),
        ("bench --dry-run --workload interleavd", "interleaved"),
        ("bench --repeat 3", "--repeats"),
        ("bench --sizes 1M", "--size"),
        ("bench explore --patterns shared", "--pattern"),
        ("bench --output-dir x", "--output"),
        ("bench compare --repeat 3", "--repeats"),
        ("run --dryrun -- true", "--dry-run"),
        ("run --hint-file x -- true", "--hints-file' or '--hint"),
        ("tune --output-file x -- true", "--output"),
        ("analyze rootcauses", "root-causes"),
        ("anaylse", "analyze"),
        ("rnu", "run"),
        ("--verson", "--version"),
    ],
)
def test_the_nearest_command_or_pattern_is_named(words: str, near: str) -> None:
    status, _, err = invoked(words)
    assert status == 2
    assert len(re.findall(rf"did you mean '{near}'\?", err, re.IGNORECASE)) == 1, err


@pytest.mark.parametrize(
    "words",
    [
        "monitor",
        "logs x.darshan",
        "run --np 4 -- true",
        "run --json -- true",
        "run --export x -- true",
        "bench --nprocs 4",
        "bench --pattern interleaved",
        "bench --dry-run --workload strided",
        "bench compare --methods x",
        "bench explore --pattern random",
        "tune --time 3m -- true",
        "analyze convert",
        "subfiles unmount x",
        "completion csh",
    ],
)
def test_nothing_is_suggested_where_nothing_is_near(words: str) -> None:
    status, _, err = invoked(words)
    assert status == 2 and "did you mean" not in err.lower(), err


def test_one_seed_is_the_default() -> None:
    seeds = {option.default for command in COMMANDS.values() for option in command.params if "--seed" in option.opts}
    assert seeds == {0}


@pytest.mark.parametrize("command", ["run", "trace"])
def test_the_status_of_a_program_that_cannot_be_executed(command: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "data").write_text("no program", encoding="utf-8")
    for name, status in (("nosuch-program", 127), (str(tmp_path / "data"), 126)):
        words = [command, *(["-o", str(tmp_path / "out")] if command == "trace" else []), "--", name]
        done = subprocess.run([sys.executable, "-m", "mpiio_ext", *words], capture_output=True, text=True, timeout=120)
        assert done.returncode == status and f"mpiio-ext: cannot execute {name}: " in done.stderr
    help_text = CliRunner().invoke(main, [command, "--help"]).stdout
    table = (ROOT / "docs/reference/commands.md").read_text(encoding="utf-8")
    assert all(str(status) in " ".join(help_text.split()) and f"| {status} |" in table for status in (126, 127))


def test_shared_options_are_declared_once() -> None:
    """``--output`` has its short form wherever it is, and no command declares it, or ``--json``, by itself."""
    found = [option for command in COMMANDS.values() for option in command.params if "--output" in option.opts]
    assert len(found) > 15 and all(option.opts == ["-o", "--output"] for option in found)
    own = [
        str(path.relative_to(ROOT))
        for folder in PRODUCT
        for path in (ROOT / folder).rglob("*.py")
        if re.search(r'click\.option\(\s*(?:"-o",\s*)?"--(?:json|output)"', path.read_text(encoding="utf-8"))
    ]
    assert own == ["mpiio_ext/common/commands.py"]


def test_no_option_drops_a_value() -> None:
    """Each option of each command takes all values that are given, or refuses the second one."""
    seen = 0
    for words, command in COMMANDS.items():
        for option in (each for each in command.params if isinstance(each, click.Option) and not each.count):
            pair, values = option.secondary_opts, [] if option.is_flag else option.nargs * ["1"]
            given = [option.opts[-1], *values, (pair or option.opts)[-1], *values]
            context = click.Context(command, info_name=words, **command.context_settings)
            if option.multiple:
                assert len(command.make_parser(context).parse_args(given)[0][option.name]) == 2, (words, given)
                continue
            repeats = contextlib.nullcontext() if option.is_flag and not pair else pytest.raises(click.BadParameter)
            with repeats as refused:
                refuse_repetitions(command, context, given)
            text = "" if refused is None else refused.value.format_message()
            assert refused is None or ("is given twice" in text and option.opts[-1] in text), (words, text)
            seen += 1
        assert isinstance(command, (Command, Group)), words  # their `parse_args` calls `refuse_repetitions`
    assert seen > 300


@pytest.mark.parametrize(
    ("words", "option", "several"),
    [
        ("run --hints-file a --hints-file b -- true", "--hints-file", False),
        ("analyze query darshan_job --limit 1 --limit 2", "--limit", False),
        ("analyze --verbose connector show x --time-zone UTC --time-zone UTC", "--time-zone", False),
        ("delegates arbitrate solve --jobs a --io-nodes 4 --no-direct --direct", "--direct", False),
        ("delegates arbitrate compare --jobs a --io-nodes 4 --io-nodes 8", "--io-nodes", True),
        ("bench --dry-run -m even -m auto", "--method", True),
    ],
)
def test_a_second_value_is_refused(words: str, option: str, several: bool) -> None:
    done = CliRunner().invoke(main, words.split())
    commas = "; separate several values by commas" if several else ""
    assert done.exit_code == 2 and f"{option}" in done.stderr, done.output
    assert re.search(rf"it is given twice and takes one value{commas}(\.|\s|$)", done.stderr), done.stderr


def test_words_of_the_program_are_its_own() -> None:
    words = ["run", "--stats=line", "--stats=json", "-H", "cb_nodes=1", "-H", "cb_nodes=2", "--dry-run", "--"]
    done = CliRunner().invoke(main, [*words, "true", "-o", "a", "-o", "b", "--hints-file", "c", "--hints-file", "d"])
    assert done.exit_code == 0 and done.stdout.endswith("-o a -o b --hints-file c --hints-file d\n"), done.output


def test_output_without_json_is_no_wish() -> None:
    done = CliRunner().invoke(main, ["locks", "--servers", "2", "--aggregators", "2", "--region", "1M", "-o", "l.json"])
    assert done.exit_code == 2 and "--output is the file of --json: give --json, too" in done.stderr


#: Commands that read a file `FILE`, of any form and of JSON.
READS = (
    "report FILE",
    "bench report FILE.json",
    "pioneer all FILE -o out",
    "pioneer path FILE -o p.parquet",
    "pioneer show FILE",
    "pioneer timeline FILE -o t.pftrace",
    "pioneer profile FILE -o p.json",
    "pioneer check FILE",
    "pioneer synthesize FILE -o p.parquet",
    "pioneer compare FILE FILE",
    "pioneer fidelity FILE",
    "analyze logs FILE",
    "analyze manifest --setup FILE.json",
    "analyze climate FILE",
    "analyze umami --history FILE.csv --job 1",
    "analyze connector show FILE",
    "analyze connector site FILE.json",
    "delegates arbitrate solve --jobs FILE --io-nodes 4",
    "delegates arbitrate queue --forge FILE",
    "delegates arbiter --dir . --io-nodes 4 --curves FILE.json",
    "delegates arbitrate curves --bench FILE.json",
    "delegates arbitrate compare --jobs FILE",
)
JSON = [
    words.replace("FILE", "FILE.json") if words in ("pioneer check FILE", "pioneer show FILE") else words
    for words in READS
    if "FILE.json" in words or words in ("pioneer check FILE", "pioneer show FILE")
]


@pytest.mark.parametrize("words", READS)
def test_a_file_that_is_not_there_has_one_sentence(
    words: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, words.replace("FILE", "none").split())
    assert done.exit_code == 2, done.output
    assert re.search(r"none(\.\w+)?: cannot be read: No such file or directory", done.stderr), done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", JSON)
def test_a_file_that_is_not_json_has_one_sentence(
    words: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.json").write_text('{"pioneer-path": 1,, "more": "' + 200 * "x" + '"}', encoding="utf-8")
    done = CliRunner().invoke(main, words.replace("FILE", "bad").split())
    assert done.exit_code == 2, done.output
    assert "bad.json: is not JSON: Expecting property name" in done.stderr, done.stderr


@pytest.mark.parametrize("command", UNUSABLE)
def test_what_cannot_be_used_is_2(command: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPIOX_HINTS", "")  # so that what the command sets is undone
    (tmp_path / "text").write_text("no file of any format\n", encoding="utf-8")
    status, out, err = invoked(f"{command} {UNUSABLE[command]}")
    assert status == 2, out + err
    assert err and not out and "Traceback" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["text"]
