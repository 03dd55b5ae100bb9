"""Check the structure of the sources: include directions, cycles, imports, lengths of functions, files, lines, texts.

The table of csrc/README.md is the only statement of which folder of csrc may include which; every edge that it allows
must be in use, and leads to the same part of csrc or to one that LAYERS names. Every C file is in one list of
csrc/sources.cmake. Inside and across folders no files may need each other: ``foo.c``, ``foo.h`` and ``foo_impl.h``
count as one file, "foo"; a file needs those whose headers it includes and those whose functions it names. Problems are
printed one a line as ``path:line: text``; the exit status is 1 when there is any.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("mpiio_ext", "partitioning", "delegates", "pioneer", "analytics")
MAPPED = frozenset(PACKAGES[1:])
MAX_FUNCTION_LINES = 60
MAX_FILE_LINES = {".py": 800, ".c": 800, ".h": 800}
MAX_COLUMNS = 120
#: {part of csrc: parts that its folders may include besides itself}: what is loaded under a program has nothing of
#: tools.
LAYERS = {
    "core": frozenset[str](),
    "mpiio": frozenset({"core"}),
    "iod": frozenset({"core", "mpiio"}),
    "entry": frozenset({"core", "mpiio", "iod"}),
    "tools": frozenset({"core"}),
}
#: Folders of csrc whose files define MPI_* functions, or call them as any program does.
ENTRY_POINTS = frozenset({"bandwidth", "engine", "interpose", "mpi"})
#: Folders of csrc whose files are in programs of their own, which print as they like.
PROGRAMS = frozenset({"bandwidth"})
#: Whether a function that is declared in another file's header counts as well as an include. Without it a header in
#: which several files declare their functions hides that they call each other in a circle.
COUNT_CALLS = True
#: Attributes of a node of Python that contain statements, or nodes with statements.
BLOCKS = ("body", "orelse", "handlers", "finalbody", "cases")
INCLUDE = re.compile(r'\s*#\s*include\s+"([^"]+)"')


def include_rules(readme: Path) -> dict[str, frozenset[str]]:
    """Return {folder: folders whose headers it may include} from the table in csrc/README.md."""
    rules: dict[str, frozenset[str]] = {}
    for line in readme.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 4 and re.fullmatch(r"[a-z_]+", cells[0]) and cells[0] != "folder":
            rules[cells[0]] = frozenset(name.strip() for name in cells[2].split(",") if name.strip())
    return rules


def rule_problems(rules: dict[str, frozenset[str]]) -> Iterator[str]:
    """Yield the mistakes in the table itself: unknown folders and cycles."""
    for folder, allowed in rules.items():
        for name in sorted(allowed - rules.keys()):
            yield f"csrc/README.md: {folder} may include '{name}', which is not a folder of the table"
    done: set[str] = set()
    while ready := {name for name, allowed in rules.items() if name not in done and allowed & rules.keys() <= done}:
        done |= ready
    if cycle := sorted(rules.keys() - done):
        yield f"csrc/README.md: the rules of {', '.join(cycle)} form a cycle"


def folder_of(csrc: Path, path: Path) -> str:
    """Return the folder of the table that a source lies in: PART/FOLDER/..., or FOLDER/NAME."""
    parts = path.relative_to(csrc).parts
    return parts[1] if len(parts) > 2 else parts[0]


def includes(csrc: Path) -> Iterator[tuple[Path, int, str]]:
    """Yield (file, line, name of the header) of every `#include "..."` of csrc."""
    for source in sorted([*csrc.rglob("*.c"), *csrc.rglob("*.h")]):
        for number, line in enumerate(source.read_text(encoding="utf-8").splitlines(), 1):
            if match := INCLUDE.match(line):
                yield source, number, Path(match.group(1)).name


def include_problems(csrc: Path, rules: dict[str, frozenset[str]]) -> Iterator[str]:
    """Yield every include that the table does not allow, every unused edge, every folder without a row."""
    owner = {header.name: folder_of(csrc, header) for header in csrc.rglob("*.h")}
    sources = [*csrc.rglob("*.c"), *csrc.rglob("*.h")]
    folders = {folder_of(csrc, path) for path in sources}
    for folder in sorted(folders - rules.keys()):
        yield f"csrc/{folder}: has no row in csrc/README.md"
    for folder in sorted(rules.keys() - folders):
        yield f"csrc/README.md: {folder} has a row and no sources"
    used: set[tuple[str, str]] = set()
    for source, number, header in includes(csrc):
        folder, target = folder_of(csrc, source), owner.get(header)
        if target is None or target == folder or folder not in rules:
            continue
        used.add((folder, target))
        if target not in rules[folder]:
            where = f"{source.relative_to(csrc.parent)}:{number}"
            yield f"{where}: {folder} must not include {target} (csrc/README.md)"
    for folder in sorted(rules.keys() & folders):
        for target in sorted(rules[folder] & rules.keys()):
            if (folder, target) not in used:
                yield f"csrc/README.md: {folder} may include {target}, and does not"


def layer_problems(csrc: Path, rules: dict[str, frozenset[str]]) -> Iterator[str]:
    """Yield the edges that the table allows from a part of csrc to a forbidden one."""
    part = {path.name: path.parent.name for path in csrc.glob("*/*") if path.is_dir()}
    for folder, allowed in rules.items():
        for target in sorted(allowed & part.keys()):
            own, other = part.get(folder), part[target]
            if own in LAYERS and other not in LAYERS[own] | {own}:
                yield f"csrc/README.md: {own}/{folder} may include {other}/{target}; {own} must not know {other}"


def list_problems(csrc: Path) -> Iterator[str]:
    """Yield C files that are in no list of sources.cmake, or in several, and lines without a file."""
    text = (csrc / "sources.cmake").read_text(encoding="utf-8")
    listed = re.findall(r"^ +csrc/(\S+?\.c)\)?$", text, re.MULTILINE)
    own = {"entry/api/mpiio_ext_delegate.c"}  # a target of one file
    there = {str(path.relative_to(csrc)) for path in csrc.rglob("*.c")} - own
    for name in sorted(there ^ set(listed)):
        yield f"csrc/sources.cmake: csrc/{name} " + ("is in no list" if name in there else "does not exist")
    for name in sorted({name for name in listed if listed.count(name) > 1}):
        yield f"csrc/sources.cmake: csrc/{name} is in several lists"


def type_problems(csrc: Path) -> Iterator[str]:
    """Yield types of the project that two files define: one name is one thing."""
    homes: dict[str, set[str]] = {}
    for path in sorted([*csrc.rglob("*.c"), *csrc.rglob("*.h")]):
        for name in re.findall(r"^}\s*(mpiox_\w+);", plain(path.read_text(encoding="utf-8")), re.MULTILINE):
            homes.setdefault(name, set()).add(str(path.relative_to(csrc.parent)))
    for name, files in homes.items():
        if len(files) > 1:
            yield f"{', '.join(sorted(files))}: each defines a type {name}"


def unit_of(name: str) -> str:
    """Return the file that a source belongs to: foo of foo.c, foo.h and foo_impl.h."""
    return Path(name).stem.removesuffix("_impl").removesuffix("_internal")


def plain(text: str) -> str:
    """Return C source without comments and the contents of strings, line for line."""
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), text, flags=re.S)
    return re.sub(r'"(\\.|[^"\\\n])*"', '""', re.sub(r"//[^\n]*", "", text))


def callees(csrc: Path) -> Iterator[tuple[str, str]]:
    """Yield (file, file whose function it names); functions of MPI's are the entry points and belong to no file."""
    texts = {path: plain(path.read_text(encoding="utf-8")) for path in sorted(csrc.rglob("*.c"))}
    definition = re.compile(r"^(?!static\b|typedef\b)[A-Za-z_][\w \t*]*?\b(\w+)\([^;{}]*\)\s*\{", re.MULTILINE)
    home = {name: unit_of(path.name) for path, text in texts.items() for name in definition.findall(text)}
    for path, text in texts.items():
        for word in sorted(set(re.findall(r"\b[a-z]\w*", text)) & home.keys()):
            if home[word] != unit_of(path.name):
                yield unit_of(path.name), home[word]


def file_graph(csrc: Path) -> dict[str, set[str]]:
    """Return {file: files that it needs}; see :func:`unit_of`."""
    own = {header.name for header in csrc.rglob("*.h")}
    graph: dict[str, set[str]] = {unit_of(path.name): set() for path in [*csrc.rglob("*.c"), *csrc.rglob("*.h")]}
    for source, _, header in includes(csrc):
        if header in own and unit_of(header) != unit_of(source.name):
            graph[unit_of(source.name)].add(unit_of(header))
    for caller, callee in callees(csrc) if COUNT_CALLS else ():
        graph[caller].add(callee)
    return graph


def shortest_cycle(graph: dict[str, set[str]], start: str) -> list[str]:
    """Return a shortest way from a file back to itself, without its end; empty if there is none."""
    paths = [[start]]
    seen: set[str] = set()
    while paths:
        path = paths.pop(0)
        for name in sorted(graph[path[-1]]):
            if name == start:
                return path
            if name not in seen:
                seen.add(name)
                paths.append([*path, name])
    return []


def cycle_problems(csrc: Path) -> Iterator[str]:
    """Yield the cycles between files: for each group of files that reach each other, its size and the shortest one."""
    graph = file_graph(csrc)
    cycles = {name: cycle for name in graph if (cycle := shortest_cycle(graph, name))}
    while cycles:
        name = min(cycles, key=lambda each: (len(cycles[each]), each))
        reach = reachable(graph, name)
        group = sorted(each for each in cycles if each in reach and name in reachable(graph, each))
        yield (
            f"csrc: {len(group)} files need each other: {', '.join(group)}; "
            f"shortest cycle: {' -> '.join([*cycles[name], name])}"
        )
        for each in group:
            del cycles[each]


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    """Return the files that a file includes, directly or not."""
    found: set[str] = set()
    left = [start]
    while left:
        for name in graph[left.pop()] - found:
            found.add(name)
            left.append(name)
    return found


def mpi_call_problems(csrc: Path) -> Iterator[str]:
    """Yield calls of MPI_* functions: inside the library only PMPI_* may be called."""
    call = re.compile(r"^\s+.*?(?<![A-Za-z0-9_])(MPI_[A-Z][a-z]\w*)\s*\(")
    types = re.compile(r"MPI_(Comm|File|Info|Datatype|Status|Request|Errhandler|Group|Op|Win|Offset|Aint|Count|Fint)$")
    for source in sorted(csrc.rglob("*.c")):
        if source.parent.name in ENTRY_POINTS:
            continue
        text = plain(source.read_text(encoding="utf-8"))
        if re.search(r"^int main\(", text, re.MULTILINE):
            continue  # a program, not part of the library
        for number, line in enumerate(text.splitlines(), 1):
            match = call.match(line)
            if match and not types.match(match.group(1)):
                yield f"{source.relative_to(csrc.parent)}:{number}: calls {match.group(1)}; only PMPI_* may be called"


def wait_problems(csrc: Path) -> Iterator[str]:
    """Yield waits that a forgotten wake-up turns into a hang: all others check again after a while."""
    for source in sorted(csrc.rglob("*.c")):
        for number, line in enumerate(plain(source.read_text(encoding="utf-8")).splitlines(), 1):
            if "pthread_cond_wait(" in line:
                yield f"{source.relative_to(csrc.parent)}:{number}: pthread_cond_wait; use mpiox_wait_condition"


def print_problems(csrc: Path) -> Iterator[str]:
    """Yield prints and messages that can end the program, or wait for ever: SIGPIPE, or a pipe that nobody reads."""
    way = re.compile(
        r"\b(?:stderr|stdout)\b|<err\.h>|\b(?:perror|psignal|v?printf|puts|putchar|v?dprintf)\s*\("
        r"|\bwrite\s*\(\s*(?:[12]|STD(?:ERR|OUT)_FILENO)\s*,"
    )
    message = re.compile(r"\b(?:send|sendto|sendmsg|sendmmsg)\s*\((?![^;]*MSG_NOSIGNAL)[^;]*;")
    for source in sorted([*csrc.rglob("*.c"), *csrc.rglob("*.h")]):
        if source.parent.name in PROGRAMS:
            continue
        text = plain(source.read_text(encoding="utf-8"))
        found = [(match, "use mpiox_print") for match in way.finditer(text)]
        if "<sys/socket.h>" in text:
            found += [(match, "give it MSG_NOSIGNAL") for match in message.finditer(text)]
        for match, advice in found:
            line = text.count("\n", 0, match.start()) + 1
            yield f"{source.relative_to(csrc.parent)}:{line}: {match[0].split('(')[0].strip()}; {advice}"


def error_text_problems(csrc: Path) -> Iterator[str]:
    """Yield texts of errors that mpiox_error.what would cut off: in a call that sets one, or returned beside such."""
    header = next(csrc.rglob("mpiox_error.h")).read_text(encoding="utf-8")
    found = re.search(r"\bchar what\[(\d+)\];", header)
    room = int(found[1]) - 1 if found else 0
    text_of = r'"((?:\\.|[^"\\\n])*)"'
    names = "mpiox_error_set|mpiox_mpi_problem|mpiox_mpi_raise_problem|mpiox_messages_fail|mpiox_file_give_up|fail"
    call = re.compile(rf"\b(?:{names})\([^;{{}}]*;")
    given = re.compile(rf"\breturn\b(?![^;{{}}]*\b(?:{names})\()[^;{{}}]*{text_of}[^;{{}}]*;")
    for source in sorted(csrc.rglob("*.c")):
        text = source.read_text(encoding="utf-8")
        calls = list(call.finditer(text))
        for match in [*calls, *(given.finditer(text) if calls else ())]:
            for what in re.findall(text_of, re.sub(r'"\s*\n\s*"', "", match[0])):
                if len(what) > room:
                    line = text.count("\n", 0, match.start()) + 1
                    yield f"{source.relative_to(csrc.parent)}:{line}: '{what}' is cut off ({room} characters fit)"


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


@functools.lru_cache(1)  # of a file that is read twice
def statements(text: str) -> list[ast.stmt]:
    """Return the statements of a Python file, nested ones too; expressions have none, and are most of it."""
    found: list[ast.stmt] = []
    left: list[ast.AST] = [ast.parse(text)]
    for node in left:  # grows
        inner = [each for name in BLOCKS for each in getattr(node, name, ())]
        found += [each for each in inner if isinstance(each, ast.stmt)]
        left += inner
    return sorted(found, key=lambda each: each.lineno)


def body_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.stmt:
    """Return the first statement of a function: its parameters, a line each, and its docstring are no code."""
    documented = len(function.body) > 1 and ast.get_docstring(function) is not None
    return function.body[1 if documented else 0]


def length_problems(path: Path, text: str) -> Iterator[str]:
    """Yield functions, files and lines that are too long."""
    name = path.relative_to(ROOT)
    rows = text.splitlines()
    if len(rows) > (most := MAX_FILE_LINES[path.suffix]):
        yield f"{name}:1: file of {len(rows)} lines (at most {most})"
    for number, row in enumerate(rows, 1):
        if len(row) > MAX_COLUMNS:
            yield f"{name}:{number}: line of {len(row)} columns (at most {MAX_COLUMNS})"
    if path.suffix in {".c", ".h"}:
        functions = list(c_function_lengths(text))
    else:
        functions = [
            (node.name, node.lineno, (node.end_lineno or node.lineno) - body_of(node).lineno + 1)
            for node in statements(text)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
    for function, line, lines in functions:
        if lines > MAX_FUNCTION_LINES:
            yield f"{name}:{line}: function {function} of {lines} lines (at most {MAX_FUNCTION_LINES})"


def import_problems(path: Path, text: str) -> Iterator[str]:
    """Yield imports of the mapped folders under their bare names."""
    for node in statements(text):
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
    for folder in ("csrc", *PACKAGES, "tests", "scripts"):
        for path in sorted((ROOT / folder).rglob("*")):
            others = {"third_party", "__pycache__"} & set(path.parts)
            if path.suffix in {".c", ".h", ".py"} and not others:
                yield path
    yield ROOT / "build.py"


def problems() -> list[str]:
    """Return every problem of the repository."""
    csrc = ROOT / "csrc"
    rules = include_rules(csrc / "README.md")
    found = [
        *rule_problems(rules),
        *include_problems(csrc, rules),
        *layer_problems(csrc, rules),
        *list_problems(csrc),
        *type_problems(csrc),
        *cycle_problems(csrc),
        *mpi_call_problems(csrc),
        *wait_problems(csrc),
        *print_problems(csrc),
        *error_text_problems(csrc),
    ]
    for path in source_files():
        text = path.read_text(encoding="utf-8")
        found += length_problems(path, text)
        if path.suffix == ".py":
            found += import_problems(path, text)
    return found


def summary() -> str:
    """Return the summary of a check without problems."""
    csrc = ROOT / "csrc"
    rules = include_rules(csrc / "README.md")
    edges = sum(len(allowed) for allowed in rules.values())
    count = sum(1 for _ in source_files())
    return (
        f"sources: csrc has {len(rules)} folders, {edges} allowed includes between them, all in use, and "
        f"{len(file_graph(csrc))} files; no cycle between folders, none between files; {count} C and Python files have "
        f"functions of {MAX_FUNCTION_LINES} lines at most, {MAX_FILE_LINES['.c']} and {MAX_FILE_LINES['.py']} lines "
        f"and {MAX_COLUMNS} columns"
    )


def main() -> int:
    """Print the problems, or the summary; return 1 if there is any problem."""
    found = problems()
    print("\n".join(found) if found else summary())
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
