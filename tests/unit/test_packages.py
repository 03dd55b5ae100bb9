"""Recipes, citation and the check before a release: what is in the repository agrees, and what does not is found."""

from __future__ import annotations

import ast
import pathlib
import re
import shutil
import subprocess
from types import ModuleType

import pytest

import mpiio_ext
from support.launch import ROOT
from support.scripts import load

FILES = (
    "mpiio_ext/__init__.py",
    "CITATION.cff",
    "pyproject.toml",
    "mpiio_ext/cli/manual.py",
    "CHANGELOG.md",
    "scripts/packages/conda/recipe.yaml",
    "scripts/packages/conda/variants.yaml",
    "scripts/packages/spack/spack_repo/mpiio_ext/packages/py_mpiio_ext/package.py",
)

pytestmark = pytest.mark.skipif(
    not (ROOT / "scripts/packages").exists(), reason="a source archive has no recipes: they name its hash"
)


@pytest.fixture(scope="module")
def release() -> ModuleType:
    return load("scripts/release_check.py")


@pytest.fixture()
def copy(tmp_path: pathlib.Path) -> pathlib.Path:
    """Return a checkout with what is compared, as it would be for a release, committed and signed off."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    date = re.search(r'^_DATE = "(\S+)"', (tmp_path / "mpiio_ext/cli/manual.py").read_text(), re.MULTILINE)
    assert date is not None
    with (tmp_path / "CITATION.cff").open("a") as cited:
        cited.write(f"version: {mpiio_ext.__version__}\ndate-released: {date[1]}\n")
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n## {mpiio_ext.__version__} - {date[1]}\n\n- something\n")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-s", "-m", "release"]):
        git(tmp_path, *words)
    return tmp_path


def git(folder: pathlib.Path, *words: str) -> None:
    settings = ["-c", "user.name=A Person", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *settings, *words], cwd=folder, check=True, capture_output=True)


def change(folder: pathlib.Path, name: str, old: str, new: str) -> None:
    text = (folder / name).read_text(encoding="utf-8")
    assert re.search(old, text, re.MULTILINE)
    (folder / name).write_text(re.sub(old, new, text, count=1, flags=re.MULTILINE), encoding="utf-8")


# ---- the repository -------------------------------------------------------------------------------------------------


def test_one_version_and_the_same_dependencies(release: ModuleType) -> None:
    assert "in 4 places" in release.same_version(ROOT)
    assert "dependencies in both recipes" in release.same_dependencies(ROOT)


def test_the_core_is_small(release: ModuleType) -> None:
    """What more is needed comes by extras; no dependency has a marker, which the recipes would have to repeat."""
    found = release.dependencies(ROOT)
    assert set(found) == {"cffi", "click", "pyelftools"} and not any(marker for _, marker in found.values())


def test_spack_package_is_what_spack_reads(release: ModuleType) -> None:
    """Its folder is its name, its class is the name in Spack's spelling, the directives are those of Spack."""
    path = ROOT / release.SPACK
    (made,) = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)]
    assert made.name == "".join(word.capitalize() for word in path.parent.name.split("_"))
    called = {node.func.id for node in ast.walk(made) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert called == {"license", "version", "variant", "depends_on", "default_args", "conflicts"}
    assert max(map(len, path.read_text().splitlines())) <= 99
    namespace = re.search(r"^  namespace: (\S+)$", (path.parents[2] / "repo.yaml").read_text(), re.MULTILINE)
    assert namespace is not None and namespace[1] == path.parents[2].name


def test_options_of_the_spack_package_are_those_of_cmake(release: ModuleType) -> None:
    options = set(re.findall(r"^option\((\w+)", release.read(ROOT, "CMakeLists.txt"), re.MULTILINE))
    used = set(re.findall(r"cmake\.define\.(\w+)", release.read(ROOT, release.SPACK)))
    assert used and used <= options


def test_conda_recipe_renders(release: ModuleType) -> None:
    pytest.importorskip("rattler_build", reason="pip install --group release")
    assert release.recipe_renders(ROOT) == "the conda recipe makes 10 packages"


# ---- the check ------------------------------------------------------------------------------------------------------


def test_a_release_is_ready(release: ModuleType, copy: pathlib.Path) -> None:
    for check in (
        release.same_version,
        release.same_date,
        release.same_dependencies,
        release.clean_tree,
        release.signed_off,
    ):
        assert check(copy)


@pytest.mark.parametrize(
    "name, old, new, check, words",
    [
        ("CITATION.cff", "^version: .*", "version: 9.9", "same_date", "CITATION.cff says 9.9"),
        ("CITATION.cff", "^version: .*\n", "", "same_date", "CITATION.cff has no"),
        (FILES[5], '  version: ".*"', '  version: "9.9"', "same_version", "recipe.yaml says 9.9"),
        (FILES[7], 'mpiio_ext-.*.tar.gz"', 'mpiio_ext-9.9.tar.gz"', "same_version", r"package.py \(pypi\) says 9.9"),
        (
            "mpiio_ext/__init__.py",
            "^__version__ = .*",
            '__version__ = "9.9"',
            "same_version",
            "the version is 9.9, but",
        ),
        ("CITATION.cff", "^date-released: .*", "date-released: 1999-01-01", "same_date", "CITATION.cff says 1999"),
        ("mpiio_ext/cli/manual.py", "^_DATE = .*", '_DATE = "1999-01-01"', "same_date", "manual.py says 1999"),
        ("CHANGELOG.md", "^## .*", "## Unreleased", "same_date", "no entry"),
        ("CHANGELOG.md", "^## ", "## Unreleased\n\n## ", "same_date", "still has an entry Unreleased"),
        ("pyproject.toml", '^    "click>=8.1",\n', "", "same_dependencies", "recipe.yaml .* differ in click"),
        ("pyproject.toml", '^    "click>=8.1"', '    "click>=9"', "same_dependencies", "differ in click"),
        ("pyproject.toml", '^    "click>=8.1"', '    "click~=8.1"', "same_dependencies", "not of the form"),
        (
            FILES[5],
            "^    - click >=8.1\n",
            "    - click >=8.1\n    - dask >=1\n",
            "same_dependencies",
            "differ in dask",
        ),
        (FILES[7], '"py-click@8.1:"', '"py-click@8:"', "same_dependencies", "package.py .* differ in py-click"),
        ("CHANGELOG.md", "something", "else", "clean_tree", "not clean: M CHANGELOG.md"),
    ],
)
def test_what_does_not_agree_is_found(
    release: ModuleType, copy: pathlib.Path, name: str, old: str, new: str, check: str, words: str
) -> None:
    change(copy, name, old, new)
    with pytest.raises(release.Failed, match=words):
        getattr(release, check)(copy)


def test_a_version_is_released_once(release: ModuleType, copy: pathlib.Path) -> None:
    git(copy, "tag", f"v{release.version_of(copy)}")
    with pytest.raises(release.Failed, match="there is a tag"):
        release.clean_tree(copy)


def test_every_commit_since_the_tag_is_signed_off_by_its_author(release: ModuleType, copy: pathlib.Path) -> None:
    git(copy, "tag", "v0.0.1")
    git(copy, "commit", "-q", "-s", "--allow-empty", "-m", "one")
    assert release.signed_off(copy) == "1 commits since v0.0.1 are signed off"
    git(copy, "commit", "-q", "--allow-empty", "-m", "two\n\nSigned-off-by: Another <b@example.org>")
    git(copy, "commit", "-q", "-s", "--allow-empty", "-m", "three")
    with pytest.raises(release.Failed, match=r"^not signed off: [0-9a-f]{10}: "):
        release.signed_off(copy)


def test_recipes_have_the_hash_of_the_sdist(release: ModuleType, copy: pathlib.Path, tmp_path: pathlib.Path) -> None:
    with pytest.raises(release.Failed, match="no sdist"):
        release.same_hash(copy, tmp_path / "dist")
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist/mpiio_ext-0.1.0.tar.gz").write_bytes(b"an sdist")
    with pytest.raises(release.Failed, match="write it into") as problem:
        release.same_hash(copy, tmp_path / "dist")
    digest = re.search("[0-9a-f]{64}", str(problem.value))
    assert digest is not None
    for name in (release.CONDA, release.SPACK):
        change(copy, name, release.NO_HASH, digest[0])
    assert release.same_hash(copy, tmp_path / "dist")


def test_failures_make_the_exit_status(
    release: ModuleType, copy: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(copy, FILES[5], '  version: ".*"', '  version: "9.9"')
    assert release.main(["--no-build", "--root", str(copy)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("FAILED  the version is") and lines[-1].endswith(" failed")
