# Copyright (c) 2026, The mpiio_ext developers
#
# SPDX-License-Identifier: BSD-3-Clause

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyMpiioExt(PythonPackage):
    """MPI-IO middleware extension put under unchanged MPI programs: file domains that suit the
    file system, I/O delegates, tuning, traces."""

    pypi = "mpiio_ext/mpiio_ext-0.1.0.tar.gz"

    license("BSD-3-Clause")

    # The hash of the sdist that is uploaded; zeros until then (CONTRIBUTING.md, A release).
    version("0.1.0", sha256="0000000000000000000000000000000000000000000000000000000000000000")

    variant("uring", default=True, description="Several requests in flight by io_uring")

    depends_on("c", type="build")
    depends_on("cmake@3.20:", type="build")
    depends_on("ninja@1.11:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("py-scikit-build-core@0.11:", type="build")

    depends_on("mpi")
    depends_on("liburing@2.2:", when="+uring")
    depends_on("python@3.10:", type=("build", "link", "run"))

    with default_args(type=("build", "run")):
        depends_on("py-cffi@1.17:")
        depends_on("py-click@8.1:")
        depends_on("py-pyelftools@0.29:")

    conflicts("platform=darwin", msg="mpiio_ext needs Linux")
    conflicts("platform=windows", msg="mpiio_ext needs Linux")

    import_modules = ["mpiio_ext"]

    def setup_build_environment(self, env: EnvironmentModifications) -> None:
        env.set("MPICC", self.spec["mpi"].mpicc)

    def config_settings(self, spec, prefix):
        return {"cmake.define.MPIOX_IO_URING": "ON" if spec.satisfies("+uring") else "OFF"}
