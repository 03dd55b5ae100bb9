"""The documents: no dead link, every page in the site, every command either run by a test or excused.

``tests/mpi/test_docs_commands.py`` runs the commands; the site itself is built there, too (slow).
"""

from __future__ import annotations

import ast
import importlib
import pathlib
import re

import pytest

from support import command_lines, documents
from support.documents import ROOT, Block

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "csrc" / "README.md"])
#: Pages whose commands tests run.
GUIDES = [
    ROOT / "README.md",
    *(page for page in PAGES if page.parent.name in {"tutorial", "howto", "explanation", "reference"}),
]


def name_of(page: pathlib.Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_dead_link(page: pathlib.Path) -> None:
    dead = []
    for line, target in documents.links(page):
        if re.match(r"[a-z]+:", target):
            continue  # another site
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            dead.append(f"{name_of(page)}:{line}: no file {path}")
        elif anchor and file.suffix == ".md" and anchor not in documents.anchors(file):
            dead.append(f"{name_of(page)}:{line}: {path or 'this page'} has no heading #{anchor}")
    assert not dead, "\n".join(dead)


def listed(page: pathlib.Path) -> set[pathlib.Path]:
    """Return the pages of the lists of a page."""
    found: set[pathlib.Path] = set()
    for block in documents.blocks(page):
        if block.language == "{toctree}":
            for row in block.text.splitlines():
                if row.strip() and not row.startswith(":"):
                    found |= set((page.parent / row.strip()).parent.resolve().glob(f"{pathlib.Path(row).name}.md"))
    return found


def test_every_page_is_in_the_site() -> None:
    docs = ROOT / "docs"
    lists = [docs / "index.md", *docs.glob("*/index.md"), docs / "reference" / "python.md"]
    missing = set(PAGES).difference(*map(listed, lists)) - {docs / "index.md"}
    assert not missing, f"in no list of docs/index.md: {sorted(map(name_of, missing))}"


def test_what_declares_its_names_is_in_the_reference() -> None:
    """A module with `__all__` is in the reference, unless it is a part of a command; other modules are internal."""
    text = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "reference").glob("python-*.md"))
    for folder in ("mpiio_ext", "partitioning", "delegates", "pioneer", "analytics"):
        for file in (ROOT / folder).rglob("*.py"):
            if re.search("^__all__ =", file.read_text(encoding="utf-8"), re.MULTILINE) is None:
                continue
            parts = (file.parent if file.name == "__init__.py" else file.with_suffix("")).relative_to(ROOT).parts
            module = ".".join(parts if parts[0] == "mpiio_ext" else ("mpiio_ext", *parts))
            if module != "mpiio_ext.cli":
                assert f"automodule:: {module}\n" in text, f"{module} is in no page of docs/reference"


def test_the_reference_has_every_section_of_the_header() -> None:
    header = (ROOT / "csrc" / "entry" / "include" / "mpiio_ext.h").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "reference" / "c.md").read_text(encoding="utf-8")
    sections = re.findall(r"^/\* ---- (.*) ---- \*/$", header, re.MULTILINE)
    assert len(sections) > 7
    assert re.findall(r"mpiio-c-header:: (.*)", page) and set(re.findall(r"c-header:: (.*)", page)) == set(sections)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_is_closed(page: pathlib.Path) -> None:
    """A block that is not closed takes in the rest of its page, and the site is not built."""
    lines = page.read_text(encoding="utf-8").splitlines()
    fences = [token for token in documents.tokens(page) if token.type == "fence" and token.map is not None]
    open_ones = [token.map[0] + 1 for token in fences if lines[token.map[1] - 1].strip() != token.markup]
    assert not open_ones, f"{name_of(page)}: lines {open_ones}"


@pytest.mark.parametrize("page", GUIDES, ids=name_of)
def test_every_block_is_run_or_excused(page: pathlib.Path) -> None:
    """A block is run, a file, an output, or says why it is none of these; a reason is a sentence, not a word."""
    for block in documents.blocks(page):
        where = f"{name_of(page)}:{block.line}"
        if block.mark == "not run":
            assert len(block.argument.split()) > 2, f"{where}: no reason"
        elif block.mark == "run":
            assert block.is_command and (block.argument in ("slow", "slurm") or block.may_judge), where
        elif block.mark in {"file", "output"}:
            assert not block.is_command, f"{where}: a block of commands is no {block.mark}"
            assert block.text.strip("… \n"), f"{where}: matches anything"
        elif not block.is_command:
            assert block.language in {"", "{eval-rst}", "{toctree}"}, f"{where}: a block that nothing looks at"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_exists(page: pathlib.Path) -> None:
    """Of all pages: subcommands, options, choices, targets of make and scripts are those that there are."""
    wrong = []
    for block in documents.blocks(page):
        if block.language in {"sh", "bash", "console"} or (not block.language and block.mark != "output"):
            starts = re.search(r"^(\$ )?(mpiio-ext|python|mpirun|srun|make) ", block.text, re.MULTILINE)
            if block.language or starts:
                wrong += [f"{name_of(page)}:{block.line}: {fault}" for fault in command_lines.check(block.text)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_in_the_text_exist(page: pathlib.Path) -> None:
    """Of commands between backticks, too; they may be beginnings, such as ``mpiio-ext analyze connector``."""
    wrong = []
    for line, code in documents.inline_codes(page):
        if re.match(r"mpiio-ext |make |(mpirun .*)?python -m mpiio_ext", code):
            wrong += [
                f"{name_of(page)}:{line}: {code}: {fault}"
                for fault in command_lines.check(code)
                if not fault.endswith("needs a value") and fault != "nothing is no command"
            ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_python_blocks_import_exists(page: pathlib.Path) -> None:
    """Of all pages: blocks of Python are Python, and every name that they import from this project is there."""
    for block in documents.blocks(page):
        if block.language != "python":
            continue
        for node in ast.walk(ast.parse(block.text)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            module = node.module if isinstance(node, ast.ImportFrom) else None
            for name in (f"{module}.{name}" if module else name for name in names):
                if name.startswith("mpiio_ext"):
                    assert _exists(name), f"{name_of(page)}:{block.line}: there is no {name}"


def test_what_python_blocks_import_is_in_the_reference() -> None:
    """Whoever copies an example finds the module, or the package that hands the name on, in the reference."""
    text = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "reference").glob("python-*.md"))
    known = set(re.findall(r"automodule:: (\S+)", text))
    missing = {
        f"{name_of(page)}: {node.module}.{alias.name}"
        for page in PAGES
        for block in documents.blocks(page)
        if block.language == "python"
        for node in ast.walk(ast.parse(block.text))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("mpiio_ext")
        for alias in node.names
        if not {node.module, f"{node.module}.{alias.name}"} & known
    }
    assert not missing, sorted(missing)


def _exists(name: str) -> bool:
    """Return whether a dotted name is a module, or an attribute of one."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        return bool(module) and hasattr(importlib.import_module(module), attribute)
    return True


def test_wrong_commands_are_found() -> None:
    right = """
        mpirun -n 4 mpiio-ext run -H cb_nodes=2 --stats=x.jsonl -- ./app --no-option   # a comment with --nothing
        mpiio-ext pioneer path TRACE -o run.parquet && mpiio-ext locks --fs lustre | head -5
        python - <<'END' > setup.json
        mpiio-ext nothing
END
        python -m mpiio_ext.bench compare --quick; python -m mpiio_ext.bench -w interleaved
        make MPI=mpich build
    """
    assert command_lines.check(right) == []
    wrong = {
        "mpiio-ext runn -- ./app": "runn is no command",
        "mpiio-ext tune --bugdet 5m -- ./app": "--bugdet is no option of tune",
        "X=1 mpirun -n 4 mpiio-ext locks --fs luster": "--fs of locks cannot be luster",
        "mpiio-ext pioneer path TRACE -o": "-o of path needs a value",
        "python -m mpiio_ext.bench compare --quik": "--quik is no option of compare",
        "make benhc": "make has no target benhc",
        "python scripts/gone.py --x": "the source tree has no scripts/gone.py",
    }
    for line, fault in wrong.items():
        assert command_lines.check(line) == [fault]


def test_excused_blocks_are_counted() -> None:
    """Of the blocks of commands those that no test runs are few, and one more is a decision."""
    commands = [block for page in GUIDES for block in documents.blocks(page) if block.is_command]
    excused = [block for block in commands if block.mark == "not run"]
    assert len(excused) == 19
    assert len(commands) > 4 * len(excused)


def test_pages_are_compared_with_outputs() -> None:
    """Numbers may differ, words may not; … stands for anything."""
    output = "some noise\n  a_counter      12 calls\n  other 3\nreason  local\n"
    assert documents.matches("  a_counter   7,000 calls\n  other 1\n", output)
    assert documents.matches("…\n  a_counter 1 calls\n…\nreason local", output)
    assert documents.matches("a_counter 1 …\n", output)
    assert not documents.matches("a_counter 1 bytes", output)
    assert not documents.matches("a_counter 1 calls\nreason local", output)  # a line is missing between them
    assert not documents.matches("other 3\na_counter 1 calls", output)


def test_marks_are_read(tmp_path: pathlib.Path) -> None:
    page = tmp_path / "page.md"
    marked = "<!-- not run: needs a\ncluster -->\n```sh\nsrun ./app\n```\n"
    page.write_text(f"# Head\n\n{marked}\n```python\n1\n```\n", encoding="utf-8")
    assert list(documents.blocks(page)) == [
        Block(line=5, language="sh", text="srun ./app\n", mark="not run", argument="needs a\ncluster"),
        Block(line=9, language="python", text="1\n", mark="", argument=""),
    ]
    assert documents.anchors(page) == {"head"}
