"""Check how the Python modules of mpiio_ext import each other: no circle, and no layer that knows the one above it.

Problem.    A module that imports others by name (``importlib.import_module``, a table of commands) hides its arrows
            from tools that look for ``import`` only: circles and layers turned round stay unseen.
Algorithm.  Modules are files: a package is its ``__init__.py``, and importing a module does not count as importing the
            packages around it. Imports inside functions count, because they are dependencies too; those under ``if
            TYPE_CHECKING`` do not. A name given to ``import_module`` counts, parts of an f-string that are not known
            standing for any name; so does the name of a module in a table (a dict, list, tuple or call that is
            assigned to a name of the module or class).
Guarantees. There is no circle among modules, and none among what is directly in one folder, each package taken as a
            whole without its command lines, which may combine packages. Every import goes to the same layer of `LAYERS`
            or a lower one; exceptions are in `ALLOWED`, and one that is not needed any more is a problem, too.
Output.     Problems, one a line, as ``path: text``; the exit status is 1 when there is any.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "mpiio_ext"
#: Folders beside mpiio_ext/ that are packages of it (pyproject.toml).
MAPPED = ("partitioning", "delegates", "pioneer", "analytics")
#: Layers, the lowest first: modules import their own and lower ones. The first pattern that fits a whole name decides.
LAYERS = {
    "common": r"mpiio_ext\.(errors|common(\..*)?)",
    "command lines": r"mpiio_ext\.(cli(\..*)?|(.*\.)?(cli|cli_\w+|command|__main__)"
                     r"|bench\.(options|slurm|compare\.(compare|scaling)))",
    "packages": r".*",
}
#: Part of a name that is known only when the module runs.
_ANY = r"[^.]+"
_ORDER = ("common", "packages", "command lines")
#: Imports against the layers that are still there: importing module -> imported ones.
ALLOWED: dict[str, set[str]] = {}


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


def _texts(tree: ast.Module, module: str) -> dict[str, str]:
    """Return the texts that a module's names stand for."""
    found = {"__name__": module}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            text = _pattern(node.value, found)
            if text is not None:
                found[node.targets[0].id] = re.sub(r"\\(.)", r"\1", text)
    return found


def _pattern(node: ast.AST, texts: Mapping[str, str]) -> str | None:
    """Return a pattern of what a text is; None: the node is no text."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.escape(node.value)
    if isinstance(node, ast.Name) and node.id in texts:
        return re.escape(texts[node.id])
    if isinstance(node, ast.JoinedStr):
        parts = (_pattern(part.value if isinstance(part, ast.FormattedValue) else part, texts) for part in node.values)
        return "".join(_ANY if part is None else part for part in parts)
    return None


def _patterns(node: ast.AST, texts: Mapping[str, str]) -> Iterator[str]:
    """Yield the patterns of all texts in an expression."""
    pattern = _pattern(node, texts)
    if pattern is not None:
        if _ANY not in pattern:
            yield pattern
        return
    for child in ast.iter_child_nodes(node):
        yield from _patterns(child, texts)


def _named(tree: ast.Module, module: str) -> Iterator[str]:
    """Yield patterns of the modules that are imported by name."""
    texts = _texts(tree, module)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            pattern = _pattern(node.args[0], texts) if called in ("import_module", "__import__") else None
            if pattern is not None:
                yield pattern
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    for node in (node for body in bodies for node in body if isinstance(node, (ast.Assign, ast.AnnAssign))):
        if node.value is not None and _pattern(node.value, texts) is None:
            yield from _patterns(node.value, texts)


def imports_of(module: str, path: Path, known: Mapping[str, Path]) -> set[str]:
    """Return the modules of `known` that a module imports, by statement or by name."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    found = set()
    for node in _import_nodes(tree):
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
    for pattern in set(_named(tree, module)):
        found |= {name for name in known if re.fullmatch(pattern, name)}
    return {name for name in found if name in known and name != module}


def layer_of(module: str) -> str:
    """Return the layer of a module."""
    return next(layer for layer, pattern in LAYERS.items() if re.fullmatch(pattern, module))


def layer_problems(graph: Mapping[str, set[str]], allowed: Mapping[str, set[str]]) -> list[str]:
    """Return every import of a higher layer that is not allowed, and what is allowed without being there."""
    higher = {(module, name) for module, names in graph.items() for name in names
              if _ORDER.index(layer_of(name)) > _ORDER.index(layer_of(module))}
    excused = {(module, name) for module, names in allowed.items() for name in names}
    return [f"{module}: imports {name}, of the higher layer `{layer_of(name)}`" for module, name in
            sorted(higher - excused)] + [
        f"scripts/check_imports.py: ALLOWED: {module} does not import {name} any more: take it out"
        for module, name in sorted(excused - higher)]


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


def graph_of(folders: Mapping[str, Path]) -> tuple[dict[str, Path], dict[str, set[str]]]:
    """Return the modules of the packages {name: folder}, and what each of them imports."""
    known = {module: path for name, folder in folders.items() for module, path in modules_of(folder, name).items()}
    return known, {module: imports_of(module, path, known) for module, path in known.items()}


def import_cycle_problems(known: Mapping[str, Path], graph: Mapping[str, set[str]]) -> list[str]:
    """Return every circle among modules and packages, in words."""
    found = [f"{known[circle[0]]}: imports itself: {' -> '.join(circle)}" for circle in cycles(graph)]
    if found:
        return found
    below = {module for module in graph if layer_of(module) != "command lines"}
    packages = {module: names & below for module, names in graph.items() if module in below}
    for module, path in known.items():
        if path.name == "__init__.py":
            found += [f"{path.parent}: packages import each other: {' -> '.join(circle)}"
                      for circle in cycles(contracted(packages, module))]
    return found


def main() -> int:
    """Print the problems; return 1 when there is any."""
    known, graph = graph_of({PACKAGE: ROOT / PACKAGE} | {f"{PACKAGE}.{name}": ROOT / name for name in MAPPED})
    found = import_cycle_problems(known, graph) + layer_problems(graph, ALLOWED)
    print("\n".join(found) if found else "imports: no circle among the modules and packages of mpiio_ext, and no layer "
                                         "imports a higher one")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
