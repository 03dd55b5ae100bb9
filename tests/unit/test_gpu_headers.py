"""The functions of GPU drivers that csrc/core/memory declares for itself are those of the vendors' headers.

A C++ program has the declarations of both, side by side, and only compiles if they agree: names, number of arguments,
what an argument takes in a register and where it points to, numbers of attributes and results, layout of structs.
"""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess
import sysconfig
import textwrap

import pytest

from support.cbuild import CSRC

MEMORY = CSRC / "core" / "memory"

SAME = """
    #include <cstddef>
    #include <cstdint>
    #include <type_traits>

    template <class T, class = void> constexpr std::size_t bytes = 0;  // an opaque type
    template <class T> constexpr std::size_t bytes<T, std::void_t<decltype(sizeof(T))>> = sizeof(T);
    template <class T> constexpr std::size_t pointee() {
        return std::is_pointer_v<T> && !std::is_void_v<std::remove_pointer_t<T>> ? bytes<std::remove_pointer_t<T>> : 0;
    }
    template <class T> constexpr bool is_word = std::is_pointer_v<T> || std::is_integral_v<T> || std::is_enum_v<T>;
    template <class A, class B> constexpr bool same_word() {
        return sizeof(A) == sizeof(B) && is_word<A> && is_word<B> &&
               (pointee<A>() == pointee<B>() || pointee<A>() == 0 || pointee<B>() == 0);
    }
    template <class R, class... A, class S, class... B> constexpr bool same(R (*)(A...), S (*)(B...)) {
        if constexpr (sizeof...(A) == sizeof...(B)) return same_word<R, S>() && (same_word<A, B>() && ...);
        else return false;
    }
"""
#: Of each driver: how its headers are included, and what else has to hold.
DRIVERS = {
    "hip": (
        "#define __HIP_PLATFORM_AMD__\n#include <hip/hip_runtime_api.h>",
        {
            "SUCCESS": "hipSuccess",
            "NO_DEVICE": "hipErrorNoDevice",
            "INVALID_DEVICE": "hipErrorInvalidDevice",
            "ATTRIBUTE_HOST_POINTER": "HIP_POINTER_ATTRIBUTE_HOST_POINTER",
            "ATTRIBUTE_IS_MANAGED": "HIP_POINTER_ATTRIBUTE_IS_MANAGED",
            "ATTRIBUTE_DEVICE_ORDINAL": "HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL",
            "HOST_TO_DEVICE": "hipMemcpyHostToDevice",
            "DEVICE_TO_HOST": "hipMemcpyDeviceToHost",
            "QUEUE_NON_BLOCKING": "hipStreamNonBlocking",
            "PIN_PORTABLE": "hipHostRegisterPortable",
        },
    ),
    "cuda": (
        "#include <cuda.h>",
        {
            "SUCCESS": "CUDA_SUCCESS",
            "NOT_INITIALIZED": "CUDA_ERROR_NOT_INITIALIZED",
            "ATTRIBUTE_CONTEXT": "CU_POINTER_ATTRIBUTE_CONTEXT",
            "ATTRIBUTE_MEMORY_TYPE": "CU_POINTER_ATTRIBUTE_MEMORY_TYPE",
            "ATTRIBUTE_IS_MANAGED": "CU_POINTER_ATTRIBUTE_IS_MANAGED",
            "ATTRIBUTE_DEVICE_ORDINAL": "CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL",
            "MEMORY_HOST": "CU_MEMORYTYPE_HOST",
            "MEMORY_DEVICE": "CU_MEMORYTYPE_DEVICE",
            "QUEUE_NON_BLOCKING": "CU_STREAM_NON_BLOCKING",
            "PIN_PORTABLE": "CU_MEMHOSTREGISTER_PORTABLE",
        }
        | {
            f"offsetof(copy_2d, {ours}_{field})": f"offsetof(CUDA_MEMCPY2D, {theirs}{name})"
            for ours, theirs in (("source", "src"), ("target", "dst"))
            for field, name in (
                ("x", "XInBytes"),
                ("y", "Y"),
                ("type", "MemoryType"),
                ("host", "Host"),
                ("device", "Device"),
                ("array", "Array"),
                ("pitch", "Pitch"),
            )
        }
        | {"offsetof(copy_2d, width)": "offsetof(CUDA_MEMCPY2D, WidthInBytes)"}
        | {"offsetof(copy_2d, height)": "offsetof(CUDA_MEMCPY2D, Height)"},
    ),
}
#: What must not compile: a mistake in our own declarations.
MISTAKES = {
    "hip": [
        ("ATTRIBUTE_HOST_POINTER = 4", "ATTRIBUTE_HOST_POINTER = 3"),
        ("size_t, size_t, int, void *);", "size_t, int, int, void *);"),
        ("(void **, unsigned)", "(void **, size_t)"),
        ("QUEUE_NON_BLOCKING = 1", "QUEUE_NON_BLOCKING = 2"),
    ],
    "cuda": [
        ("ATTRIBUTE_CONTEXT = 1", "ATTRIBUTE_CONTEXT = 2"),
        ("int (*cuCtxPopCurrent_v2)(void **)", "int (*cuCtxPopCurrent_v2)(char *)"),
        ("size_t source_x, source_y;", "size_t source_y, source_x;"),
        ("PIN_PORTABLE = 1", "PIN_PORTABLE = 2"),
    ],
}


def headers(kind: str, folder: pathlib.Path) -> pathlib.Path:
    """Return the folder of a vendor's headers: of the system, of a wheel, or of a Debian package that is unpacked."""
    wheels = pathlib.Path(sysconfig.get_path("purelib"), "nvidia").glob("*/include")
    places = [pathlib.Path("/usr/include"), pathlib.Path("/opt/rocm/include"), pathlib.Path("/usr/local/cuda/include")]
    name = "cuda.h" if kind == "cuda" else "hip/hip_runtime_api.h"
    for place in (*places, *wheels):
        if (place / name).exists():
            return place
    package = "libamdhip64-dev"
    if kind == "hip" and shutil.which("apt-get"):
        subprocess.run(
            ["apt-get", "download", "-q", package], cwd=folder, capture_output=True, timeout=120, check=False
        )
        for path in folder.glob(f"{package}_*.deb"):
            subprocess.run(["dpkg", "-x", path, folder], timeout=60, check=True)
            return folder / "usr" / "include"
    pytest.skip(f"{name} is nowhere: {'pip install nvidia-cuda-runtime' if kind == 'cuda' else package}")


def one(pattern: str, text: str) -> str:
    """Return the only part of a source that matches."""
    (found,) = re.findall(pattern, text, re.S | re.M)
    return str(found)


def program(kind: str, mistake: tuple[str, str] = ("", "")) -> str:
    """Return a program that compiles if the declarations agree; `mistake`: a change of ours."""
    texts = [
        (MEMORY / name).read_text(encoding="utf-8")
        for name in (f"mpiox_memory_{kind}.c", "mpiox_memory_driver.h", "mpiox_memory_driver.c")
    ]
    assert not mistake[0] or any(mistake[0] in text for text in texts), mistake
    own, header, calls = (text.replace(*mistake) if mistake[0] else text for text in texts)
    both = one(r"^typedef struct mpiox_memory_driver \{.*?^\} mpiox_memory_driver;", header)
    table = one(r"^static struct \{.*?^\} driver;", own)
    names = re.findall(r'"(\w+)"', one(r"^static const char \*const functions\[\] = \{(.*?)\};", own))
    fields = [f"same.{name}" for name in re.findall(r"\(\*(\w+)\)\(", both)]
    fields += re.findall(r"\(\*(\w+)\)\(", table)
    assert len(fields) == len(names) > 8
    includes, equal = DRIVERS[kind]
    structs = re.findall(r"^typedef struct copy_2d \{.*?^\} copy_2d;", own, re.S | re.M)
    numbers = one(r"^enum \{.*?^\};", own), one(r"^enum \{.*?^\};", calls).replace("SUCCESS = 0,", "")
    checks = [
        f'static_assert(same(decltype(&{name})(nullptr), decltype(driver.{field})(nullptr)), "{name}");'
        for name, field in zip(names, fields, strict=True)
    ]
    checks += [f'static_assert((long)({ours}) == (long)({theirs}), "{theirs}");' for ours, theirs in equal.items()]
    ours = ["namespace ours {", *numbers, *structs, both, table, *checks, "}"]
    return "\n".join([includes, textwrap.dedent(SAME), *ours])


def compiles(text: str, include: pathlib.Path, folder: pathlib.Path) -> str:
    """Return the errors of a compiler."""
    (source := folder / "both.cpp").write_text(text, encoding="utf-8")
    words = ["g++", "-std=c++17", "-fsyntax-only", "-w", f"-isystem{include}", str(source)]
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False).stderr


@pytest.mark.parametrize("kind", DRIVERS)
def test_declarations_are_the_vendors(tmp_path: pathlib.Path, kind: str) -> None:
    include = headers(kind, tmp_path)
    assert compiles(program(kind), include, tmp_path) == ""
    for mistake in MISTAKES[kind]:
        found = compiles(program(kind, mistake), include, tmp_path)
        assert "static assertion failed" in found, mistake
