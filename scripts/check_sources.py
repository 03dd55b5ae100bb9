"""Check the structure of the sources: include directions, imports, lengths of functions and files.

The table of csrc/README.md is the only statement of which folder of csrc may include which. Problems are printed one a
line as ``path:line: text``; the exit status is 1 when there is any.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("mpiio_ext", "partitioning", "delegates", "pioneer", "analytics")
MAPPED = frozenset(PACKAGES[1:])
MAX_FUNCTION_LINES = 100
MAX_FILE_LINES = 800


def include_rules(readme: Path) -> dict[str, frozenset[str]]:
    """Return {folder: folders whose headers it may include} from the table in csrc/README.md."""
    rules: dict[str, frozenset[str]] = {}
    for line in readme.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 4 and re.fullmatch(r"[a-z_]+", cells[0]) and cells[0] != "folder":
            rules[cells[0]] = frozenset(name.strip() for name in cells[2].split(",") if name.strip())
    return rules


def rule_problems(rules: dict[str, frozenset[str]]) -> Iterator[str]:
    """Yield what is wrong with the table itself: unknown folders and cycles."""
    for folder, allowed in rules.items():
        for name in sorted(allowed - rules.keys()):
            yield f"csrc/README.md: {folder} may include '{name}', which is not a folder of the table"
    done: set[str] = set()
    while ready := {name for name, allowed in rules.items() if name not in done and allowed & rules.keys() <= done}:
        done |= ready
    if cycle := sorted(rules.keys() - done):
        yield f"csrc/README.md: the rules of {', '.join(cycle)} form a cycle"


def include_problems(csrc: Path, rules: dict[str, frozenset[str]]) -> Iterator[str]:
    """Yield every `#include "..."` that the table does not allow, and every folder that has no row."""
    folders = sorted(path for path in csrc.iterdir() if path.is_dir())
    owner = {header.name: folder.name for folder in folders for header in folder.rglob("*.h")}
    for folder in folders:
        sources = sorted([*folder.rglob("*.c"), *folder.rglob("*.h")])
        if sources and folder.name not in rules:
            yield f"csrc/{folder.name}: has no row in csrc/README.md"
            continue
        for source in sources:
            for number, line in enumerate(source.read_text(encoding="utf-8").splitlines(), 1):
                match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
                target = owner.get(Path(match.group(1)).name) if match else None
                if target is not None and target != folder.name and target not in rules[folder.name]:
                    yield (
                        f"{source.relative_to(csrc.parent)}:{number}: {folder.name} must not include {target} "
                        "(csrc/README.md)"
                    )


def mpi_call_problems(csrc: Path) -> Iterator[str]:
    """Yield calls of MPI_* functions: inside the library only PMPI_* may be called."""
    call = re.compile(r"^\s+.*?(?<![A-Za-z0-9_])(MPI_[A-Z][a-z]\w*)\s*\(")
    types = re.compile(r"MPI_(Comm|File|Info|Datatype|Status|Request|Errhandler|Group|Op|Win|Offset|Aint|Count|Fint)$")
    for source in sorted(csrc.rglob("*.c")):
        if source.parent.name == "generated" or source.parent.name == "interpose":
            continue  # these define them
        text = re.sub(
            r"/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), source.read_text(encoding="utf-8"), flags=re.S
        )
        if re.search(r"^int main\(", text, re.MULTILINE):
            continue  # a program, not part of the library
        for number, line in enumerate(text.splitlines(), 1):
            match = call.match(re.sub(r'"(\\.|[^"\\])*"', '""', line))
            if match and not types.match(match.group(1)):
                yield f"{source.relative_to(csrc.parent)}:{number}: calls {match.group(1)}; only PMPI_* may be called"


def c_function_lengths(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield (name, first line, lines) of every function of a C file; its last brace stands alone in column 0."""
    lines = text.splitlines()
    start = 0
    for number, line in enumerate(lines, 1):
        if not start and line.endswith("{"):
            start = number
        elif start and line.startswith("}"):
            head = start - 1
            while head > 0 and lines[head - 1].strip() and not lines[head - 1].rstrip().endswith((";", "}", "*/")):
                head -= 1
            match = re.search(r"(\w+)\s*\(", " ".join(lines[head:start]))
            if match and line == "}":
                yield match.group(1), start, number - start + 1
            start = 0


def length_problems(path: Path, text: str) -> Iterator[str]:
    """Yield functions and files that are too long."""
    name = path.relative_to(ROOT)
    count = len(text.splitlines())
    if count > MAX_FILE_LINES:
        yield f"{name}:1: file of {count} lines (at most {MAX_FILE_LINES})"
    if path.suffix in {".c", ".h"}:
        functions = list(c_function_lengths(text))
    else:
        functions = [
            (node.name, node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1)
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
    for function, line, lines in functions:
        if lines > MAX_FUNCTION_LINES:
            yield f"{name}:{line}: function {function} of {lines} lines (at most {MAX_FUNCTION_LINES})"


def import_problems(path: Path, text: str) -> Iterator[str]:
    """Yield imports of the mapped folders under their bare names."""
    for node in ast.walk(ast.parse(text)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module]
        for name in names:
            if name.split(".")[0] in MAPPED:
                yield f"{path.relative_to(ROOT)}:{node.lineno}: import mpiio_ext.{name}, not {name}"


def source_files() -> Iterator[Path]:
    """Yield the hand-written C and Python files of the repository."""
    for folder in ("csrc", *PACKAGES, "tests", "scripts", "benchmarks"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in {".c", ".h", ".py"} and "generated" not in path.parts and "__pycache__" not in path.parts:
                yield path
    yield ROOT / "build.py"


def problems() -> list[str]:
    """Return every problem of the repository."""
    csrc = ROOT / "csrc"
    rules = include_rules(csrc / "README.md")
    found = [*rule_problems(rules), *include_problems(csrc, rules), *mpi_call_problems(csrc)]
    for path in source_files():
        text = path.read_text(encoding="utf-8")
        found += length_problems(path, text)
        if path.suffix == ".py":
            found += import_problems(path, text)
    return found


def main() -> int:
    """Print the problems; return 1 when there is any."""
    found = problems()
    print("\n".join(found) if found else "sources: structure is as csrc/README.md says")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
