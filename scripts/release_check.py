"""Check that this checkout can be released: ``make release-check``; CONTRIBUTING.md has the steps of a release.

Problem. A release has its version, its date and its dependencies in several files, which drift apart, and what is
uploaded cannot be taken back.

Checks, a line each: the version and the date are the same everywhere; the changelog has an entry; recipes name
pyproject's dependencies and the hash of the sdist; the working tree is clean, and the tag is free; commits are signed
off; sdist and wheel are built and pass twine; CITATION.cff is valid. Nothing is changed but the folder of the builds.
The exit status is 1 when a check has failed. Tests are not run: `make test-all`, under both MPIs, is a step of its own.
"""

from __future__ import annotations

import argparse
import ast
import functools
import hashlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SPACK = "scripts/packages/spack/spack_repo/mpiio_ext/packages/py_mpiio_ext/package.py"
CONDA = "scripts/packages/conda/recipe.yaml"
MANUAL = "mpiio_ext/cli/manual.py"
NO_HASH = "0" * 64


class Failed(Exception):  # noqa: N818
    """A check has failed; the text names the reason and the remedy."""


def read(root: Path, name: str) -> str:
    """Return the text of a file of the project."""
    return (root / name).read_text(encoding="utf-8")


def one(pattern: str, text: str, where: str) -> str:
    """Return the group of a pattern that occurs in a text, on a line of its own."""
    found = re.search(pattern, text, re.MULTILINE)
    if found is None:
        raise Failed(f"{where} has no {pattern}")
    return found[1]


def version_of(root: Path) -> str:
    """Return the version, from the one place that states it."""
    return one(r'^__version__ = "([^"]+)"', read(root, "mpiio_ext/__init__.py"), "mpiio_ext/__init__.py")


def versions(root: Path) -> dict[str, str]:
    """Return file -> version that it names."""
    return {
        "mpiio_ext/__init__.py": version_of(root),
        CONDA: one(r'^  version: "(\S+)"', read(root, CONDA), CONDA),
        SPACK: one(r'^    version\(\s*"([^"]+)"', read(root, SPACK), SPACK),
        f"{SPACK} (pypi)": one(r'^    pypi = "mpiio_ext/mpiio_ext-(.+)\.tar\.gz"', read(root, SPACK), SPACK),
    }


def dependencies(root: Path) -> dict[str, tuple[str, str]]:
    """Return package -> (least version, marker) of the dependencies in pyproject.toml."""
    text = one(r"(?s)^dependencies = \[(.*?)^\]", read(root, "pyproject.toml"), "pyproject.toml")
    found = re.findall(r'^    "([A-Za-z0-9_-]+)>=([0-9.]+)(?:; ([^"]+))?",', text, re.MULTILINE)
    if len(found) != len(text.strip().splitlines()):
        raise Failed("pyproject.toml has a dependency that is not of the form NAME>=VERSION")
    return {name: (least, marker) for name, least, marker in found}


def conda_dependencies(root: Path) -> dict[str, str]:
    """Return package -> least version of the recipe's run requirements, without the interpreter and MPI."""
    text = one(r"(?s)^  run:\n(.*?)^\S", read(root, CONDA), CONDA)
    return dict(re.findall(r"^ *(?:- |then: )([a-z0-9-]+) >=([0-9.]+)$", text, re.MULTILINE))


def spack_dependencies(root: Path) -> dict[str, str]:
    """Return package -> least version that the Spack package needs, by its syntax tree."""
    calls = [node for node in ast.walk(ast.parse(read(root, SPACK))) if isinstance(node, ast.Call)]
    specs = [
        ast.literal_eval(call.args[0])
        for call in calls
        if isinstance(call.func, ast.Name) and call.func.id == "depends_on"
    ]
    return dict(match.groups() for spec in specs if (match := re.fullmatch(r"([a-z0-9-]+)@([0-9.]+):", spec)))


def same_version(root: Path) -> str:
    """Check that all files name one version."""
    found = versions(root)
    wrong = [f"{name} says {version}" for name, version in found.items() if version != version_of(root)]
    if wrong:
        raise Failed(f"the version is {version_of(root)}, but {'; '.join(wrong)}")
    return f"version {version_of(root)} in {len(found)} places"


def same_date(root: Path) -> str:
    """Check that changelog, citation and manual name one date, that of the release, and the citation its version."""
    version, changes = version_of(root), read(root, "CHANGELOG.md")
    entry = re.search(rf"^## \[?{re.escape(version)}\]?\s+[-–—]\s+(\d{{4}}-\d\d-\d\d)$", changes, re.MULTILINE)
    if entry is None:
        raise Failed(f'CHANGELOG.md has no entry "## {version} - YYYY-MM-DD": rename Unreleased')
    if re.search(r"^## Unreleased", changes, re.MULTILINE):
        raise Failed("CHANGELOG.md still has an entry Unreleased")
    cited = one(r"^version: (\S+)", read(root, "CITATION.cff"), "CITATION.cff")
    if cited != version:
        raise Failed(f"the version is {version}, but CITATION.cff says {cited}")
    dates = {
        "CITATION.cff": one(r"^date-released: (\S+)", read(root, "CITATION.cff"), "CITATION.cff"),
        MANUAL: one(r'^_DATE = "(\S+)"', read(root, MANUAL), MANUAL),
    }
    wrong = [f"{name} says {date}" for name, date in dates.items() if date != entry[1]]
    if wrong:
        raise Failed(f"CHANGELOG.md says {entry[1]}, but {'; '.join(wrong)}")
    return f"of {entry[1]}, in the changelog"


def same_dependencies(root: Path) -> str:
    """Check that the recipes need the same as pyproject.toml, no more and no less."""
    wanted = {name: least for name, (least, _) in dependencies(root).items()}
    conda = conda_dependencies(root)
    python = one(r'^requires-python = ">=([0-9.]+)"', read(root, "pyproject.toml"), "pyproject.toml")
    for name, found, needed in (
        (CONDA, conda, wanted | {"python": python}),
        (
            SPACK,
            {k: v for k, v in spack_dependencies(root).items() if k.startswith("py-") or k == "python"},
            {f"py-{k}": v for k, v in wanted.items()} | {"python": python, "py-scikit-build-core": _builder(root)},
        ),
    ):
        different = sorted(key for key in found.keys() | needed.keys() if found.get(key) != needed.get(key))
        if different:
            raise Failed(f"{name} and pyproject.toml differ in {', '.join(different)}")
    return f"{len(wanted)} dependencies in both recipes"


def _builder(root: Path) -> str:
    return one(r'^requires = \["scikit-build-core>=([0-9.]+)"\]', read(root, "pyproject.toml"), "pyproject.toml")


def git(root: Path, *words: str) -> str:
    """Return the output of git."""
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(f"git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()


def clean_tree(root: Path) -> str:
    """Check that everything is committed, and that there is no such release yet."""
    changed = git(root, "status", "--porcelain")
    if changed:
        raise Failed(f"the working tree is not clean: {changed.splitlines()[0].strip()}")
    tag = f"v{version_of(root)}"
    if git(root, "tag", "--list", tag):
        raise Failed(f"there is a tag {tag} already: raise __version__")
    return f"clean, and {tag} is free"


def signed_off(root: Path) -> str:
    """Check that the commits since the last tag are signed off by their authors; without a tag, the last commit."""
    tag = git(root, "describe", "--tags", "--abbrev=0", "--match", "v*") if git(root, "tag", "--list", "v*") else ""
    span = [f"{tag}..HEAD"] if tag else ["-1"]
    log = git(root, "log", "--no-merges", "--format=%H%x1f%an <%ae>%x1f%B%x1e", *span)
    commits = [entry.strip().split("\x1f") for entry in log.split("\x1e") if entry.strip()]
    missing = [number[:10] for number, author, text in commits if f"Signed-off-by: {author}" not in text]
    if missing:
        raise Failed(
            f"not signed off: {' '.join(missing)}: git commit --amend -s, git rebase --signoff {tag or 'HEAD~1'}"
        )
    return f"{len(commits)} commits since {tag or 'the last but one'} are signed off"


def _tool(*words: str, cwd: Path | None = None) -> None:
    done = subprocess.run([sys.executable, "-m", *words], cwd=cwd, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(f"{' '.join(words[:2])}: {(done.stdout + done.stderr).strip()[-800:]}")


def valid_citation(root: Path) -> str:
    """Check CITATION.cff against its schema."""
    program = Path(sys.executable).with_name("cffconvert")  # it has no module to be run
    if not program.exists():
        raise Failed("no cffconvert: pip install --group release")
    done = subprocess.run([program, "--validate", "-i", root / "CITATION.cff"], capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(f"CITATION.cff: {(done.stdout + done.stderr).strip()[-800:]}")
    return "CITATION.cff is valid"


def recipe_renders(root: Path) -> str:
    """Check the conda recipe by rattler-build: its schema, its templates, one package of each variant."""
    try:
        import rattler_build
    except ImportError as error:
        raise Failed("no rattler_build: pip install --group release") from error
    folder = (root / CONDA).parent
    try:
        recipe = rattler_build.Stage0Recipe.from_file(str(folder / "recipe.yaml"))
        made = recipe.render(rattler_build.VariantConfig.from_file(str(folder / "variants.yaml")))
    except rattler_build.RattlerBuildError as error:
        raise Failed(f"{CONDA}: {error}") from error
    return f"the conda recipe makes {len(made)} packages"


def built(root: Path, folder: Path) -> str:
    """Build the sdist, and the wheel from it, and check the page that PyPI will show."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in (*folder.glob("*.tar.gz"), *folder.glob("*.whl")):
        old.unlink()
    _tool("build", "--outdir", str(folder.resolve()), str(root.resolve()), cwd=folder)  # not where build.py is
    made = sorted(str(path) for path in (*folder.glob("*.tar.gz"), *folder.glob("*.whl")))
    if len(made) != 2:
        raise Failed(f"{folder} has {made}, not an sdist and a wheel")
    _tool("twine", "check", "--strict", *made)
    return f"sdist and wheel in {folder}, twine finds nothing"


def same_hash(root: Path, folder: Path) -> str:
    """Check that the recipes have the hash of the sdist that was built, which does not contain them."""
    sdist = next(folder.glob("*.tar.gz"), None)
    if sdist is None:
        raise Failed(f"no sdist in {folder}")
    digest = hashlib.sha256(sdist.read_bytes()).hexdigest()
    found = {name: one(r'sha256[:=] ?"([0-9a-f]{64})"', read(root, name), name) for name in (CONDA, SPACK)}
    wrong = [name for name, value in found.items() if value != digest]
    if wrong:
        raise Failed(f"the sdist's sha256 is {digest}; write it into {' and '.join(wrong)}")
    return "the recipes have the sdist's hash"


def checks(root: Path, folder: Path, build: bool) -> Iterator[Callable[[], str]]:
    """Yield the checks in their order."""
    every = (same_version, same_date, same_dependencies, recipe_renders, valid_citation, clean_tree, signed_off)
    for check in every:
        yield functools.partial(check, root)
    if build:
        yield functools.partial(built, root, folder)
        yield functools.partial(same_hash, root, folder)


def main(words: list[str]) -> int:
    """Run the checks; return the exit status."""
    parser = argparse.ArgumentParser(description="Check that this checkout can be released.")
    parser.add_argument("--no-build", action="store_true", help="build nothing")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help="folder of sdist and wheel; default: build/release/dist")
    options = parser.parse_args(words)
    failed = 0
    for check in checks(options.root, options.out or options.root / "build/release/dist", not options.no_build):
        try:
            print(f"ok      {check()}", flush=True)
        except Failed as problem:
            failed += 1
            print(f"FAILED  {problem}", flush=True)
    print(f"{failed} failed" if failed else "ready; make test-all, under both MPIs, is the next step", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
