"""The build: generated sources, structure of the sources, what an installation offers to C programs."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from elftools.elf.elffile import ELFFile

import mpiio_ext
from mpiio_ext import elf
from mpiio_ext.abi import POSIX
from mpiio_ext.cli import manual
from support.expected import Expected
from support.scripts import load

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def build() -> ModuleType:
    return load("build.py")


@pytest.fixture(scope="module")
def check() -> ModuleType:
    return load("scripts/check_sources.py")


# ---- generated sources ----------------------------------------------------------------------------------------------


def copy_of_the_sources(folder: Path) -> Path:
    """Copy what the generators read, their script with it."""
    shutil.copytree(ROOT / "csrc", folder / "csrc")
    for part in ("darshan", "sanitize"):
        shutil.copytree(ROOT / "pioneer" / part, folder / "pioneer" / part)
    (folder / "mpiio_ext" / "common").mkdir(parents=True)
    for name in ("iocalls.py", "iocalls.txt"):
        shutil.copy(ROOT / "mpiio_ext" / "common" / name, folder / "mpiio_ext" / "common")
    shutil.copy(ROOT / "build.py", folder)
    return folder


def generate(root: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-B", root / "build.py", *words],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_cmake_asks_for_every_generated_file(build: ModuleType) -> None:
    text = (ROOT / "csrc" / "cmake" / "generated.cmake").read_text(encoding="utf-8")
    lines = re.findall(r"^(?:set|generate)\((?:(?!DEPENDS)[^)])*", text, re.MULTILINE)
    asked = re.findall(r"\b\w+\.[ch]\b", " ".join(lines))
    assert sorted(asked) == sorted(build.outputs())
    listed = dict(re.findall(r"^set\((names|entry|tracer|api) ([^)]*)\)", text, re.MULTILINE))
    entry, tracer, api = (set(build.load(ROOT / path).outputs()) for path in build.GENERATORS)
    assert set(listed["entry"].split()) == entry - {listed["names"]}
    assert [set(listed["tracer"].split()), set(listed["api"].split())] == [tracer, api]


def test_the_same_sources_give_the_same_bytes(build: ModuleType, tmp_path: Path) -> None:
    """Whatever the order of sets, and wherever the sources lie; a file that would not change is not written."""
    root = copy_of_the_sources(tmp_path / "elsewhere")
    for source, folder, seed in ((ROOT, "a", "1"), (root, "b", "2")):
        done = generate(source, "--output", str(tmp_path / folder), PYTHONHASHSEED=seed)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    texts = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "a").iterdir()}
    assert texts == {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "b").iterdir()}
    assert texts == build.outputs()

    (tmp_path / "a" / "mpiox_calls.c").write_text("an older one")
    for path in (tmp_path / "a").iterdir():
        os.utime(path, (1, 1))
    assert generate(ROOT, "--output", str(tmp_path / "a"), "mpiox_calls.c", "_tools.c").returncode == 0
    assert [path.name for path in (tmp_path / "a").iterdir() if path.stat().st_mtime != 1] == ["mpiox_calls.c"]
    assert (tmp_path / "a" / "mpiox_calls.c").read_text(encoding="utf-8") == texts["mpiox_calls.c"]


def test_difference_to_a_commit(tmp_path: Path) -> None:
    """What a reviewer sees: nothing, a declaration, a line of the table; commits that cannot be compared."""
    root = copy_of_the_sources(tmp_path)
    settings = ["-c", "user.name=A Person", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "before"]):
        subprocess.run(["git", *settings, *words], cwd=root, check=True, capture_output=True)
    done = generate(root, "--diff", "HEAD")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    header = root / "csrc/entry/include/mpiio_ext.h"
    header.write_text(header.read_text().replace("/* cffi: end */", "int mpiio_ext_new(void);\n/* cffi: end */"))
    table = root / "mpiio_ext/common/iocalls.txt"
    table.write_text(re.sub("^File_preallocate .*\n", "", table.read_text(), flags=re.MULTILINE))
    done = generate(root, "--diff", "HEAD")
    assert done.returncode == 1, done.stderr
    changed = set(re.findall(r"^--- (\S+) \(HEAD\)\n\+\+\+ \1 \(working tree\)$", done.stdout, re.MULTILINE))
    assert {"_binding.c", "mpiox_wrappers.c", "mpiox_fortran.c", "mpiox_trace_mpi_calls.c"} <= changed
    assert "_tools.c" not in changed
    assert re.search(r"^\+.*mpiio_ext_new", done.stdout, re.MULTILINE)
    assert re.search(r"^-EXPORT int MPI_File_preallocate\(", done.stdout, re.MULTILINE)
    assert generate(root, "--diff", "HEAD", "_tools.c").returncode == 0

    # A file that only the commit has, and without cffi, which no other file needs.
    entry = root / "csrc/entry/api/generate.py"
    entry.write_text(entry.read_text().replace("mpiio_ext_passed_on.c", "mpiio_ext_passed_by.c"))
    (root / "cffi.py").write_text("raise ImportError('no cffi here')\n")
    done = generate(root, "--diff", "HEAD", "mpiio_ext_passed_on.c", PYTHONPATH=str(root))
    assert done.returncode == 1 and "+++ mpiio_ext_passed_on.c (working tree)\n@@ -1," in done.stdout, done.stderr
    assert re.search("^[+][^+]", done.stdout, re.MULTILINE) is None
    (root / "cffi.py").unlink()

    for words, what in (
        (["--diff", "no-such-commit"], "no-such-commit"),
        (["--diff", "HEAD", "no_such_file.c"], "nothing generates no_such_file.c"),
    ):
        done = generate(root, *words)
        assert done.returncode == 2 and what in done.stderr and "Traceback" not in done.stderr
    (root / "build.py").write_text((root / "build.py").read_text().replace("def outputs(", "def other(", 1))
    subprocess.run(["git", *settings, "commit", "-q", "-a", "-m", "no outputs"], cwd=root, check=True)
    shutil.copy(ROOT / "build.py", root / "build.py")
    done = generate(root, "--diff", "HEAD")
    assert done.returncode == 2 and "the generators of HEAD" in done.stderr


def test_without_cffi(tmp_path: Path) -> None:
    """The entry points of MPI need none; for the modules it is said what is missing."""
    (tmp_path / "cffi.py").write_text("raise ImportError('no cffi here')\n")
    done = generate(ROOT, "--output", str(tmp_path / "made"), "mpiox_wrappers.c", PYTHONPATH=str(tmp_path))
    assert done.returncode == 0 and (tmp_path / "made" / "mpiox_wrappers.c").is_file()
    done = generate(ROOT, "--output", str(tmp_path / "made"), "_binding.c", PYTHONPATH=str(tmp_path))
    assert done.returncode == 2 and "pip install cffi" in done.stderr and "Traceback" not in done.stderr


PACK = """
import sys
from scikit_build_core.build import build_sdist, get_requires_for_build_wheel
print(*get_requires_for_build_wheel())
if len(sys.argv) > 1:
    build_sdist(sys.argv[1])
"""


def configure(root: Path, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Let CMake look at the sources with the Python of these tests."""
    words = [shutil.which("cmake", path=f"{sys.prefix}/bin:{os.environ['PATH']}"), "-S", root, "-B", folder]
    words += [f"-DMPI_C_COMPILER={compiler()}", f"-DPython_EXECUTABLE={sys.executable}", "-DMPIOX_BUILD_TESTS=OFF"]
    return subprocess.run(words, env=os.environ | environment, capture_output=True, text=True, timeout=120)


@pytest.mark.mpi
def test_source_distribution_carries_what_is_generated(build: ModuleType, tmp_path: Path) -> None:
    """It asks for no cffi and is configured without one; a checkout is not, and says so."""
    root = copy_of_the_sources(tmp_path / "checkout")
    for name in (".gitignore", "CMakeLists.txt", "LICENSE", "README.md", "pyproject.toml", "scripts/pages.py"):
        (root / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    for name in ("mpiio_ext", "partitioning", "delegates", "pioneer", "analytics"):
        shutil.copytree(ROOT / name, root / name, dirs_exist_ok=True)
    (root / "generated").mkdir()
    (root / "generated" / "old.c").write_text("what an earlier packing has left")
    words = [sys.executable, "-B", "-c", PACK]
    done = subprocess.run([*words, tmp_path / "dist"], cwd=root, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cffi" in done.stdout.splitlines()[0]

    shutil.unpack_archive(next((tmp_path / "dist").glob("*.tar.gz")), tmp_path)
    unpacked = tmp_path / f"mpiio_ext-{mpiio_ext.__version__}"
    texts = {path.name: path.read_text(encoding="utf-8") for path in (unpacked / "generated").rglob("*.*")}
    assert texts == build.outputs() | manual.pages() | {"help.txt": manual.helps()}
    done = subprocess.run(words, cwd=unpacked, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "cffi" not in done.stdout

    (tmp_path / "cffi.py").write_text("raise ImportError('no cffi here')\n")
    done = configure(unpacked, tmp_path / "b", PYTHONPATH=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert f"{unpacked}/generated/man" in (tmp_path / "b" / "cmake_install.cmake").read_text(encoding="utf-8")
    done = configure(root, tmp_path / "c", PYTHONPATH=str(tmp_path))
    assert done.returncode != 0 and "pip install cffi" in " ".join(done.stderr.split())


@pytest.mark.both
@pytest.mark.mpi
def test_modules_have_every_declared_function(build: ModuleType) -> None:
    for source, header in build.BINDINGS.items():
        module = importlib.import_module(f"mpiio_ext.{Path(source).stem}")
        text = re.sub(r"/\*.*?\*/", "", build.declarations(header), flags=re.DOTALL)
        declared = set(re.findall(r"\b(mpiio_ext_\w+)\s*\(", text))
        assert declared
        assert declared <= set(dir(module.lib))


@pytest.mark.both
@pytest.mark.mpi
def test_nothing_of_the_tools_is_in_the_library() -> None:
    """What a simulation maps serves its I/O: no function of csrc/tools."""
    tools = {
        path.name
        for part in ("pioneer", "analytics", "binding", "lock_model")
        for path in (ROOT / "csrc" / "tools" / part).glob("*.c")
    }
    text = (ROOT / "csrc" / "sources.cmake").read_text(encoding="utf-8")
    lists = dict(re.findall(r"set\(MPIOX_(\w+)_SOURCES\n(.*?)\)", text, re.DOTALL))
    loaded = " ".join(lists[name] for name in ("CORE", "TYPEMAP", "DOMAINS", "MPIIO", "IOD", "ENTRY"))
    assert "csrc/tools" not in loaded and "TOOLS" not in loaded
    assert {name for name in tools if f"/{name}" not in lists["TOOLS"]} == set()
    symbols = mpiio_ext.get_library().read_bytes()
    for name in (b"mpiox_rawtrace", b"mpiox_critical_path", b"mpiox_handle_resolution", b"mpiox_lock_model"):
        assert name not in symbols


# ---- structure of the sources ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_structure_of_the_sources(check: ModuleType) -> None:
    assert check.problems() == []


def write_sources(csrc: Path, **texts: str) -> None:
    """Write files of csrc: FOLDER__NAME_SUFFIX="text"."""
    for name, text in texts.items():
        folder, _, file = name.partition("__")
        (csrc / folder).mkdir(parents=True, exist_ok=True)
        stem, _, suffix = file.rpartition("_")
        (csrc / folder / f"{stem}.{suffix}").write_text(text)


def test_checks_of_folders(check: ModuleType, tmp_path: Path, expected: Expected) -> None:
    """Includes that the table does not allow, edges that nobody uses, folders and rows without each other, cycles."""
    csrc = tmp_path / "csrc"
    write_sources(
        csrc,
        access__a_h="",
        common__b_c='#include "a.h"\n',
        stray__c_c="\n",
        access__d_c='#include "e.h"\n',
        layout__e_h="",
    )
    rules = {"common": frozenset[str](), "access": frozenset({"common", "layout"}), "layout": frozenset[str]()}
    cyclic = {"common": frozenset({"access"}), "access": frozenset({"common", "nothing"})}
    included = sorted(check.include_problems(csrc, rules | {"gone": frozenset[str]()}))
    expected(
        {
            "includes": included,
            **{name: check.rule_problems(each) for name, each in (("rules", rules), ("cyclic", cyclic))},
        }
    )


def test_checks_of_files(check: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that need each other, by includes or only by calls; foo_impl.h belongs to foo."""
    csrc = tmp_path / "csrc"
    write_sources(
        csrc,
        x__a_h="int a(void);\n",
        x__a_impl_h="int b(void);\n",
        x__a_c='#include "a.h"\n',
        y__b_c='#include "a_impl.h"\nint b(void)\n{\n    return 0;\n}\n',
        y__c_h='#include "d.h"\n',
        y__d_h='#include "e.h"\n',
        z__e_c='#include "c.h"\n',
        z__e_h="",
    )
    ring = "csrc: 3 files need each other: c, d, e; shortest cycle: c -> d -> e -> c"
    assert check.unit_of("a_impl.h") == check.unit_of("a.c") == "a"
    assert list(check.cycle_problems(csrc)) == [ring]
    (csrc / "x" / "a.c").write_text('#include "a_impl.h"\n/* b() */\nstatic int f(void)\n{\n    return b();\n}\n')
    pair = "csrc: 2 files need each other: a, b; shortest cycle: a -> b -> a"
    assert list(check.cycle_problems(csrc)) == [pair, ring]
    monkeypatch.setattr(check, "COUNT_CALLS", False)
    assert list(check.cycle_problems(csrc)) == [ring]


BARE = "import delegates\nfrom partitioning.x import y\nfrom . import analytics\nimport mpiio_ext.pioneer\n"
#: Sources that are longer than they may be, by their ends, and one that is not.
LONG = {
    "f.c": "static int f(void)\n{\n" + "    g();\n" * 60 + "}\n",
    "f.py": 'def f(\n    a\n):\n    """F.\n\n    """\n' + "    g()\n" * 61,
    "lines.c": "\n" * 801,
    "lines.py": "\n" * 801,
    "short.py": "\n" * 800,
    "wide.h": "/*" + "ä" * 118 + "\n" + "x" * 121 + "\n",
}


def test_checks_of_lines(
    check: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expected: Expected
) -> None:
    """Calls of MPI_*, long functions, files and lines, and imports of mapped folders."""
    monkeypatch.setattr(check, "ROOT", tmp_path)
    csrc = tmp_path / "csrc"
    write_sources(
        csrc,
        common__b_c='/* x */\n\nint b(void)\n{\n    return MPI_Barrier("MPI_Wait()");\n}\n',
        common__c_c="/* pthread_cond_wait() */\nvoid c(void)\n{\n    pthread_cond_wait(&a, &b);\n}\n",
        common__p_c='#include <sys/socket.h> /* stderr */\nvoid p(void)\n{\n    puts("stderr");\n    write(2, x, 1);\n'
        "    fprintf(\n        stderr, x);\n    send(fd, x, 1,\n         0);\n    send(fd, x, MSG_NOSIGNAL);\n}\n",
        common__q_c="int q(void)\n{\n    return send(1);\n}\n",
        bandwidth__r_c="void r(void)\n{\n    fputs(x, stderr);\n}\n",
    )
    found = [*check.mpi_call_problems(csrc), *check.wait_problems(csrc), *check.print_problems(csrc)]
    found += [problem for name, text in LONG.items() for problem in check.length_problems(tmp_path / name, text)]
    expected([*found, *check.import_problems(tmp_path / "x.py", BARE)])


def test_check_of_error_texts(check: ModuleType, tmp_path: Path, expected: Expected) -> None:
    """A text that does not fit into mpiox_error.what, given in a call, over two lines, or returned to one."""
    csrc = tmp_path / "csrc"
    write_sources(
        csrc,
        common__mpiox_error_h="typedef struct {\n    char what[12];\n} mpiox_error;\n",
        mpi__a_c='f()\n{\n    mpiox_error_set(e, 1, 0, -1, -1, x ? "11 letters." : "12 letters..");\n}\n'
        'g()\n{\n    mpiox_mpi_problem(e, 1,\n              "seven, "\n              "six...");\n}\n'
        'h()\n{\n    return x ? "returned text" : NULL;\n}\n',
        mpi__b_c='f()\n{\n    return "goes into no error";\n}\n',
    )
    expected(check.error_text_problems(csrc))


def test_checks_say_what_they_have_checked(check: ModuleType) -> None:
    assert re.match(r"sources: csrc has \d+ folders, \d+ allowed includes .* no cycle between folders", check.summary())


def defined(library: Path) -> set[str]:
    """Return the dynamic symbols that a library defines."""
    with library.open("rb") as stream:
        table = ELFFile(stream).get_section_by_name(".dynsym")
        return {each.name for each in table.iter_symbols() if each.name and each["st_shndx"] != "SHN_UNDEF"}


@pytest.mark.both
@pytest.mark.mpi
def test_only_names_of_mpi_and_its_own_leave_the_library() -> None:
    """No function of the C library, nor of PnetCDF, that a program would find in it."""
    symbols = defined(mpiio_ext.get_library())
    assert {"MPI_File_open", "mpiio_ext_version"} <= symbols
    assert {name for name in symbols if not re.match(r"(MPI|mpi)_|ompi_\w+_f$|mpiio_ext_", name)} == set()


@pytest.mark.mpi
def test_the_library_for_calls_past_mpi_has_what_its_list_says() -> None:
    """Functions that a program would find elsewhere; it needs no MPI library."""
    symbols = defined(mpiio_ext.get_library().with_name(POSIX))
    listed = (ROOT / "csrc/entry/posix/exports.map").read_text(encoding="utf-8").partition("global:")[2]
    assert symbols == set(re.findall(r"(\w+);", listed.partition("local:")[0]))
    c_library = {name for name in symbols if not name.startswith(("ncmpi_", "mpiio_ext_"))}
    assert len(c_library) > 70 and [name for name in sorted(c_library) if not hasattr(ctypes.CDLL(None), name)] == []
    assert set(elf.read(str(mpiio_ext.get_library().with_name(POSIX))).needed) <= {"libc.so.6", "libdl.so.2"}


# ---- what an installation offers ------------------------------------------------------------------------------------

PROGRAM = r"""
#include <mpiio_ext.h>
#include <stdio.h>

int main(void)
{
    printf("%s %s %d\n", mpiio_ext_version(), mpiio_ext_mpi_family(), mpiio_ext_interposed());
    return 0;
}
"""


def pkg_config(*arguments: str, folder: Path) -> list[str]:
    done = subprocess.run(
        ["pkg-config", *arguments, "mpiio_ext"],
        env={**os.environ, "PKG_CONFIG_PATH": str(folder)},
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout.split()


def compiler() -> str:
    """Return the MPI compiler wrapper of this environment."""
    own = Path(sys.prefix) / "bin" / "mpicc"
    return str(own) if own.exists() else "mpicc"


def link_by_pkg_config(folder: Path, lib: Path) -> None:
    assert pkg_config("--modversion", folder=lib / "pkgconfig") == [mpiio_ext.__version__]
    flags = pkg_config("--cflags", "--libs", folder=lib / "pkgconfig")
    assert any(Path(flag[2:]).resolve() == lib for flag in flags if flag.startswith("-L"))
    subprocess.run([compiler(), "program.c", "-o", "program", *flags], cwd=folder, check=True, timeout=120)


def link_by_cmake(folder: Path, lib: Path) -> None:
    found = [f"-Dmpiio_ext_ROOT={lib.parent}", f"-Dversion={mpiio_ext.__version__}"]
    found += [f"-Dprogram={folder / 'program.c'}", f"-DMPI_C_COMPILER={shutil.which(compiler())}"]
    for words in (["-S", str(ROOT / "tests/programs"), "-B", ".", *found], ["--build", "."]):
        subprocess.run(["cmake", *words], cwd=folder, check=True, timeout=120)


@pytest.mark.both
@pytest.mark.mpi
@pytest.mark.parametrize("moved", [False, True], ids=["installed", "moved"])
@pytest.mark.parametrize("link", [link_by_pkg_config, link_by_cmake])
def test_c_program_links_by_pkg_config_and_cmake(tmp_path: Path, moved: bool, link: Callable[..., None]) -> None:
    lib = mpiio_ext.get_library().parent
    if moved:  # relocatable: a copy of the tree serves as well
        shutil.copytree(mpiio_ext.get_include(), tmp_path / "elsewhere" / "include")
        lib = shutil.copytree(lib, tmp_path / "elsewhere" / "lib")
    (tmp_path / "program.c").write_text(PROGRAM)
    link(tmp_path, lib)
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run(
        [tmp_path / "program"], env=environment, check=True, capture_output=True, text=True, timeout=60
    )
    version, family, interposed = done.stdout.split()
    assert version == mpiio_ext.__version__
    assert family in {"openmpi", "mpich"}
    assert interposed == "1"  # found before the MPI library by link order


MODULES = """
foreach name {module-whatis conflict} { proc $name args {} }
proc prepend-path {name path} { puts "$name $path" }
set ModulesCurrentModulefile [lindex $argv 0]
source $ModulesCurrentModulefile
"""


@pytest.mark.parametrize("package", ["mpiio_ext", "lib/python3.12/site-packages/mpiio_ext", ""])
def test_modulefile_names_the_folders_around_it(tmp_path: Path, package: str) -> None:
    installed = tmp_path / "share/modulefiles/mpiio_ext/0.1.0"
    installed.parent.mkdir(parents=True)
    shutil.copy(ROOT / "csrc/entry/modulefile", installed)
    expected = f"PATH {tmp_path}/bin\n"
    if package:
        (tmp_path / package / "lib").mkdir(parents=True)
        expected += f"PKG_CONFIG_PATH {tmp_path}/{package}/lib/pkgconfig\nCMAKE_PREFIX_PATH {tmp_path}/{package}\n"
    (tmp_path / "modules.tcl").write_text(MODULES)
    command = ["tclsh", tmp_path / "modules.tcl", installed]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout == expected


@pytest.mark.mpi
def test_wheel_has_what_the_engine_needs(build: ModuleType) -> None:
    """Every function of MPI that the engine names is looked up at run time, and its header is in the wheel."""
    engine = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "csrc/tools/engine").glob("*.[ch]"))
    table = build.outputs(["mpiox_any_mpi_names.h"])["mpiox_any_mpi_names.h"]
    named = set(re.findall(r"\bMPI_[A-Z][a-z0-9]*_\w*[a-z0-9]\b", engine))
    assert "MPI_File_read" in named  # given to a macro that calls it
    assert {name for name in named if f"#define {name} " not in table} == set()
    installed = (ROOT / "csrc/cmake/wheel.cmake").read_text(encoding="utf-8")
    assert "csrc/tools/engine/mpiio_ext_engine.h" in installed
    assert 0 < installed.index("set(root .)") < installed.index("include(csrc/cmake/pages.cmake)")  # where docs/ goes


def test_get_include_and_get_library() -> None:
    header = (ROOT / "csrc/entry/include/mpiio_ext.h").read_text()
    assert (mpiio_ext.get_include() / "mpiio_ext.h").read_text() == header
    assert mpiio_ext.get_library().is_file()


@pytest.mark.both
@pytest.mark.mpi
def test_library_and_package_agree() -> None:
    from mpiio_ext._binding import ffi, lib

    assert ffi.string(lib.mpiio_ext_version()).decode() == mpiio_ext.__version__
    assert ffi.string(lib.mpiio_ext_error_name(-1)).decode() == "out of memory"
    assert ffi.string(lib.mpiio_ext_error_name(-999)).decode() == "unknown error"
