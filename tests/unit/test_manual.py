"""Manual pages and completion: made from the command line; they render, and shells complete."""

from __future__ import annotations

import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import time

import click
import pytest

from mpiio_ext.cli import main, manual
from support.launch import ROOT, base_environment

BIN = pathlib.Path(sys.prefix) / "bin"
NAMES = main.list_commands(click.Context(main))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    made = tmp_path_factory.mktemp("man")
    for name, text in manual.pages().items():
        (made / name).write_text(text, encoding="ascii")
    return made


def environment() -> dict[str, str]:
    return base_environment() | {"PATH": f"{BIN}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}


# ---- manual pages ---------------------------------------------------------------------------------------------------


def test_the_build_makes_them_without_the_compiled_part(tmp_path: pathlib.Path) -> None:
    """Pages and help are those of the program; a page of a command that there is no more goes."""
    (tmp_path / "man").mkdir()
    (tmp_path / "man" / "mpiio-ext-gone.1").write_text("x")
    command = [sys.executable, "-B", ROOT / "scripts/pages.py", tmp_path]
    subprocess.run(command, env=environment(), timeout=120, check=True)
    made = manual.pages() | {"help.txt": manual.helps()}
    assert {path.name: path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.*")} == made


def test_a_default_is_told_once() -> None:
    for name, text in manual.pages().items():
        assert not re.findall(r"\[default: [^]]*\] +\[default: .*", text), name


def test_every_command_and_every_option_has_its_place() -> None:
    pages = manual.pages()
    assert set(pages) == {"mpiio-ext.1", *(f"mpiio-ext-{name}.1" for name in NAMES)}

    def options(command: click.Command) -> set[str]:
        own = {
            name for item in command.params if isinstance(item, click.Option) and not item.hidden for name in item.opts
        }
        inner = (
            [
                command.get_command(click.Context(command), name)
                for name in command.list_commands(click.Context(command))
            ]
            if isinstance(command, click.Group)
            else []
        )
        return own.union(*(options(item) for item in inner if item is not None and not item.hidden))

    for name in NAMES:
        command = main.get_command(click.Context(main), name)
        assert command is not None
        text = pages[f"mpiio-ext-{name}.1"].replace("\\-", "-").replace("\\fB", " ")
        missing = [option for option in options(command) if not re.search(rf"(?<![\w-]){option}(?![\w-])", text)]
        assert not missing, name


@pytest.mark.parametrize(
    "text, escaped",
    [
        (".start", "\\&.start"),
        ("a\n.b", "a\n\\&.b"),
        ("'quote'", "\\(aqquote\\(aq"),
        ("a-b \\ c", "a\\-b \\e c"),
        ("×", "\\[u00D7]"),
        ("~^`", "\\(ti\\(ha\\(ga"),
    ],
)
def test_escapes(text: str, escaped: str) -> None:
    assert manual._escape(text) == escaped


def test_pages_render_without_a_warning(folder: pathlib.Path) -> None:
    if shutil.which("man") is None or shutil.which("groff") is None:
        pytest.skip("no man with groff")
    for path in sorted(folder.iterdir()):
        done = subprocess.run(
            ["man", "--warnings", "-E", "UTF-8", "-l", str(path)],
            capture_output=True,
            text=True,
            env=environment() | {"MANWIDTH": "100", "MANPAGER": "cat"},
        )
        assert done.returncode == 0 and done.stderr == "", path.name
        assert "NAME" in done.stdout and "\\" not in re.sub(r"\\b", "", done.stdout), path.name


def test_pages_pass_mandoc(folder: pathlib.Path) -> None:
    if shutil.which("mandoc") is None:
        pytest.skip("no mandoc")
    done = subprocess.run(
        ["mandoc", "-Tlint", "-Wwarning", *sorted(map(str, folder.iterdir()))], capture_output=True, text=True
    )
    assert done.stdout + done.stderr == ""


# ---- completion -----------------------------------------------------------------------------------------------------


def asked(words: str, shell: str = "bash") -> list[str]:
    """Return what the program answers to the shell's question, by click's protocol."""
    variables = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    done = subprocess.run(
        [BIN / "mpiio-ext"],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment() | variables | {"_MPIIO_EXT_COMPLETE": f"{shell}_complete"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_answers() -> None:
    assert asked("mpiio-ext ") == [f"plain,{name}" for name in NAMES]
    assert asked("mpiio-ext doc") == ["plain,doctor"]
    assert asked("mpiio-ext doctor --no-") == ["plain,--no-write", "plain,--no-spawn"]
    assert asked("mpiio-ext completion z") == ["plain,zsh"]
    assert asked("mpiio-ext run -- ./ap") == ["file,./ap"]
    assert asked("mpiio-ext pioneer sh") == ["plain,show"]


def test_hints_are_completed() -> None:
    """Names of the registry, then the values of those that have a list of them; also behind a glob."""
    assert asked("mpiio-ext run -H mpiox_p") == ["plain,mpiox_partition="]
    assert asked("mpiio-ext run --hint romio_ds_") == ["plain,romio_ds_write=", "plain,romio_ds_read="]
    assert asked("mpiio-ext run -H mpiox_partition=a") == [
        f"plain,mpiox_partition={word}" for word in ("auto", "aligned")
    ]
    assert asked("mpiio-ext run -H *.h5:mpiox_stats=") == [
        f"plain,*.h5:mpiox_stats={word}" for word in ("true", "false", "line", "full", "json")
    ]
    assert asked("mpiio-ext run -H cb_nodes=") == [""]
    assert asked("mpiio-ext tune -H mpiox_exchange=d") == ["plain,mpiox_exchange=direct"]
    assert asked("mpiio-ext pioneer replay --hint mpiox_p") == ["plain,mpiox_partition="]
    assert asked("mpiio-ext run -H mpiox_p -- ./ap") == ["file,./ap"]


def test_names_are_completed_without_importing_them() -> None:
    code = (
        "import sys; from mpiio_ext.cli import main; import click; main.shell_complete(click.Context(main), ''); "
        "print([name for name in sys.modules if name.startswith(('numpy', 'mpiio_ext.analytics', 'rich'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.argv = ['mpiio-ext']; {code}"],
        capture_output=True,
        text=True,
        env=environment(),
    )
    assert done.stdout.strip() == "[]", done.stderr


#: How an interactive shell is started without a person's own settings, and what it needs before the script.
SHELLS = {"bash": (["--norc", "-i"], ""), "zsh": (["-f", "-i"], "autoload -U compinit; compinit -u -D; ")}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_what_is_typed(shell: str) -> None:
    """In a terminal: the words are completed by tabulators, and what comes of them is run."""
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell}")
    options, first = SHELLS[shell]
    pid, terminal = pty.fork()
    if pid == 0:
        plain = {"TERM": "dumb", "PS1": "$ ", "INPUTRC": "/dev/null"}
        os.execvpe(shell, [shell, *options], environment() | plain)
    text = b""

    def until(mark: bytes) -> None:
        nonlocal text
        deadline_s = time.monotonic() + 240
        while mark not in text:
            assert time.monotonic() < deadline_s, text
            if select.select([terminal], [], [], 1)[0]:
                text += os.read(terminal, 65536)
        text = text.partition(mark)[2]

    try:
        os.write(terminal, f'{first}eval "$(mpiio-ext completion {shell})"; echo ready$((1+1))\n'.encode())
        until(b"ready2")
        os.write(terminal, b"mpiio-ext completi\t")
        until(b"completion ")
        os.write(terminal, b"fi\t")
        until(b"fish ")
        os.write(terminal, b"| head -n 1\n")
        until(b"function _mpiio_ext_completion")
        os.write(terminal, b"mpiio-ext run -H mpiox_pa\t")
        until(b"mpiox_partition=")
        if shell == "bash":  # which cuts words at "=" and at ":"
            os.write(terminal, b"gr\t")
            until(b"group_cyclic ")
            os.write(terminal, b"-H a:romio_cb_w\t")
            until(b"romio_cb_write=")
            os.write(terminal, b"en\t")
            until(b"enable ")
            os.write(terminal, b"--dry-run -- true\n")
            until(b"'MPIOX_HINTS=*:mpiox_partition=group_cyclic,a:romio_cb_write=enable'")
    finally:
        os.close(terminal)
        os.kill(pid, 9)
        os.waitpid(pid, 0)


def test_fish_completes() -> None:
    if shutil.which("fish") is None:
        pytest.skip("no fish")
    asks = (
        "mpiio-ext doc",
        "mpiio-ext completion fi",
        "mpiio-ext run --dry",
        "mpiio-ext pioneer sh",
        "mpiio-ext run -H mpiox_p",
    )
    script = "mpiio-ext completion fish | source; " + "; ".join(f"complete -C '{words}'" for words in asks)
    done = subprocess.run(["fish", "--no-config", "-c", script], capture_output=True, text=True, env=environment())
    words = [line.partition("\t")[0] for line in done.stdout.splitlines()]
    assert words == ["doctor", "fish", "--dry-run", "show", "mpiox_partition="], done.stderr
