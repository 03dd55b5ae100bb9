"""Check that no Python modules of mpiio_ext import each other in a circle, and no packages either.

Modules are files: a package is its ``__init__.py``, and importing a module does not count as importing the packages
around it. Imports inside functions count, because they are dependencies too; those under ``if TYPE_CHECKING`` do not.
Among the packages and modules of one folder, each package taken as a whole, there is no circle either.
Problems are printed one a line as ``path: text``; the exit status is 1 when there is any.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "mpiio_ext"
#: Folders beside mpiio_ext/ that are packages of it (pyproject.toml).
MAPPED = ("partitioning", "delegates", "pioneer", "analytics")


def modules_of(folder: Path, name: str) -> dict[str, Path]:
    """Return {module: file} of the package `name` in `folder`."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        found[".".join([name, *(parts[:-1] if parts[-1] == "__init__" else parts)])] = path
    return found


def _is_for_types_only(node: ast.If) -> bool:
    test = node.test
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def _import_nodes(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child
        elif isinstance(child, ast.If) and _is_for_types_only(child):
            for other in child.orelse:
                yield from _import_nodes(ast.Module(body=[other], type_ignores=[]))
        else:
            yield from _import_nodes(child)


def imports_of(module: str, path: Path, known: Mapping[str, Path]) -> set[str]:
    """Return the modules of `known` that a module imports."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found = set()
    for node in _import_nodes(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
            continue
        base = node.module or ""
        if node.level:
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*above, *([base] if base else [])])
        for alias in node.names:
            inside = f"{base}.{alias.name}"
            found.add(inside if inside in known else base)
    return {name for name in found if name in known and name != module}


def cycles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return a shortest circle through the first module of each group of modules that import each other."""
    found, done = [], set[str]()
    for start in sorted(graph):
        if start in done:
            continue
        circle = _shortest_circle(graph, start)
        if circle:
            found.append(circle)
            done |= {name for name in graph if _reaches(graph, start, name) and _reaches(graph, name, start)}
    return found


def _shortest_circle(graph: Mapping[str, set[str]], start: str) -> list[str]:
    paths, seen = [[start]], {start}
    for path in paths:
        for name in sorted(graph[path[-1]]):
            if name == start:
                return [*path, start]
            if name not in seen:
                seen.add(name)
                paths.append([*path, name])
    return []


def _reaches(graph: Mapping[str, set[str]], start: str, goal: str) -> bool:
    seen, todo = {start}, [start]
    while todo:
        for name in graph[todo.pop()]:
            if name == goal:
                return True
            if name not in seen:
                seen.add(name)
                todo.append(name)
    return False


def contracted(graph: Mapping[str, set[str]], package: str) -> dict[str, set[str]]:
    """Return the imports among what is directly in a package, its packages taken as a whole."""
    inside = package + "."

    def child(module: str) -> str:
        return inside + module[len(inside) :].partition(".")[0]

    out: dict[str, set[str]] = {}
    for module, imported in graph.items():
        if module.startswith(inside):
            others = {child(name) for name in imported if name.startswith(inside)}
            out.setdefault(child(module), set()).update(others - {child(module)})
    return out


def import_cycle_problems(folders: Mapping[str, Path]) -> list[str]:
    """Return every circle among the modules and packages of the packages {name: folder}, in words."""
    known = {module: path for name, folder in folders.items() for module, path in modules_of(folder, name).items()}
    graph = {module: imports_of(module, path, known) for module, path in known.items()}
    found = [f"{known[circle[0]]}: imports itself: {' -> '.join(circle)}" for circle in cycles(graph)]
    if found:
        return found
    for module, path in known.items():
        if path.name == "__init__.py":
            found += [f"{path.parent}: packages import each other: {' -> '.join(circle)}"
                      for circle in cycles(contracted(graph, module))]
    return found


def main() -> int:
    """Print the problems; return 1 when there is any."""
    folders = {PACKAGE: ROOT / PACKAGE} | {f"{PACKAGE}.{name}": ROOT / name for name in MAPPED}
    found = import_cycle_problems(folders)
    print("\n".join(found) if found else "imports: no circle among the modules and packages of mpiio_ext")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
