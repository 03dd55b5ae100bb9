# The I/O libraries above MPI, for scripts/setup, which includes this file: parallel h5py and netCDF4, and for MPICH, which
# Debian has neither for, PnetCDF and netCDF-C.
#
# Each is built once by a job in the background while the set-up does other things, and kept in $wheels under a name that
# says everything it depends on. Nothing of it knows the environment that it was built in: paths to libraries are
# relative ($ORIGIN). (pip's own cache of wheels is avoided: it would not tell a serial build from a parallel one.)
#
#   start_builds        begin what is not installed yet
#   install_built       wait for it, install and check it
#
# Without h5py the set-up fails; without netCDF it says so in one line, tries again next time, and tests and bench leave
# out what needs it.

readonly h5py_version=3.16.0
readonly netcdf4_version=1.7.4
readonly pnetcdf_source=1.12.3-1 # Debian 12's, as apt names them
readonly netcdf_source=1:4.9.0-3
readonly wheels=${XDG_CACHE_HOME:-$HOME/.cache}/mpiio_ext/wheels

readonly h5py=(h5py scripts/stack.bash "$venv/pyvenv.cfg")
readonly rc_header=scripts/patches/netcdf_rc.h               # for netCDF4 for Python
readonly version_patch=scripts/patches/netcdf_version.patch  # for netCDF-C
readonly netcdf=(netcdf scripts/stack.bash "$rc_header" "$version_patch" "$venv/pyvenv.cfg")
h5py_job=
netcdf_job=

# ---- what all builds use ---------------------------------------------------------------------------------------------

# store_of NAME PACKAGE...: where a build is kept, by the versions of Debian's packages that it needs.
store_of() {
    local key
    key=$1$(dpkg-query -W -f '-${Package}-${Version}' "${@:2}" 2>/dev/null || echo -local)
    echo "$wheels/${key//[^A-Za-z0-9.+_-]/_}"
}

short_digest() { sha256sum "$1" | head -c 8; }

# What else a wheel depends on.
python_versions() {
    "$venv/bin/python" -c 'import importlib.metadata as m, sys
print(sys.implementation.cache_tag, "mpi4py-" + m.version("mpi4py"), "numpy-" + m.version("numpy"), sep="-")'
}

# cause LOG: the line of a log that says what went wrong.
cause() { grep -am 1 -E '^ *(E|error|ERROR|CMake Error.*|configure: error|.*[:] (fatal )?error): [^s]' "$1" || tail -n 1 "$1"; }

# build_wheel STORE PROJECT VERSION [NAME=VALUE...]: build a wheel from the source on PyPI with these variables set. With
# isolation pip would build mpi4py and NumPy anew.
build_wheel() {
    local store=$1 project=$2 version=$3
    rm -rf "$store" "$store.part"
    mkdir -p "$store.part"
    printf '[build_ext]\nparallel = %d\n' "$(nproc)" >"$folder/$project.cfg"
    env "${@:4}" DIST_EXTRA_CONFIG="$folder/$project.cfg" "$venv/bin/python" -m pip wheel --no-build-isolation \
        --no-deps --no-cache-dir --no-binary="$project" -w "$store.part" "$project==$version" \
        >"$folder/$project.log" 2>&1 || { say "$project: $(cause "$folder/$project.log")"; return 1; }
    mv "$store.part" "$store"
}

# compiler NAME LIBRARY PLACE...: write the C compiler build/MPI/NAME, which links to a library of the environment, found
# at run time in PLACE relative to what was linked. Absolute paths that build systems add are dropped.
compiler() {
    local place rpath=
    for place in "${@:3}"; do rpath+=" '-Wl,-rpath,\$ORIGIN/$place'"; done
    cat >"$folder/$1" <<EOT
#!/bin/sh
for argument; do
    shift
    case \$argument in -Wl,-rpath | -Wl,-rpath,* | -Wl,/*) ;; *) set -- "\$@" "\$argument" ;; esac
done
exec gcc -I"$venv/include" "\$@" -Wl,--no-as-needed -L"$venv/lib" $2$rpath
EOT
    chmod +x "$folder/$1"
}

# Debian's HDF5 wants Debian's MPICH, libmpich.so.12, of which the wheel's libmpi.so.12 is a newer release with the same
# ABI. An empty library with the former name that depends on the latter, beside it, is what its users are linked to: the
# linker then takes it for the libmpich.so.12 that HDF5 asks for, and only one MPI is loaded.
link_mpich() {
    echo 'extern int mpiio_ext_no_symbols;' |
        gcc -shared -fPIC -x c - -o "$venv/lib/libmpich.so.12" -Wl,-soname,libmpich.so.12 -Wl,--no-as-needed \
            -L"$venv/lib" -lmpi '-Wl,-rpath,$ORIGIN'
    compiler mpich-cc-extension -l:libmpich.so.12 ../../.. # from site-packages/PACKAGE/ to lib/
    compiler mpich-cc-library -l:libmpich.so.12 .
    compiler mpich-cc-pnetcdf -lmpi . ../lib # it needs no HDF5
}

# ---- h5py ------------------------------------------------------------------------------------------------------------

build_h5py() {
    local store cc=mpicc.openmpi
    [[ $mpi == openmpi ]] || cc=$folder/mpich-cc-extension
    store=$(store_of "h5py-$h5py_version-$mpi-$(python_versions)" "libhdf5-$mpi-dev")
    if ! compgen -G "$store/h5py-*.whl" >/dev/null; then
        say "building h5py $h5py_version with parallel HDF5 (several minutes, once; log: $folder/h5py.log)"
        build_wheel "$store" h5py "$h5py_version" HDF5_MPI=ON CC="$cc" CFLAGS=-g0 HDF5_DIR="$hdf5" || return 1
        say "h5py is built"
    fi
    compgen -G "$store/h5py-*.whl" | head -n 1 >"$folder/h5py.wheel"
}

# ---- netCDF ----------------------------------------------------------------------------------------------------------

# Where this machine has Debian 12's packages from.
debian_archive() {
    apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
        sed -n 's/ \(bookworm\|stable\|oldstable\) main$//p' | head -n 1 | grep .
}

# fetch_source PACKAGE=VERSION FOLDER: unpack Debian's original source, checked by apt. The machine's own lists of
# packages are neither used nor changed, and no root is needed.
fetch_source() {
    local apt=$folder/apt sources
    sources=$(debian_archive) || { echo "error: no source of Debian 12's packages is configured"; return 1; }
    local options=(-q -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$apt/lists"
        -o Dir::Cache="$apt/cache" -o APT::Sandbox::User=root -o APT::Update::Error-Mode=any)
    rm -rf "$2" && mkdir -p "$2" "$apt/lists/partial" "$apt/cache/archives/partial" || return 1
    echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $sources bookworm main" >"$apt/sources.list"
    apt-get "${options[@]}" update && (cd "$2" && apt-get "${options[@]}" source --download-only "$1") || return 1
    tar -C "$2" --strip-components=1 -xf "$2"/*.orig.tar.*
}

# build_pnetcdf_mpich FOLDER PREFIX, build_netcdf_mpich FOLDER PREFIX: build the C libraries, PnetCDF with its tools.
build_pnetcdf_mpich() (
    fetch_source "pnetcdf=$pnetcdf_source" "$1" && cd "$1" && autoreconf -i || return 1
    # configure runs what it compiles, before it lies where its libraries are found.
    export LD_LIBRARY_PATH=$venv/lib
    ./configure --prefix="$2" --disable-fortran --disable-cxx --enable-shared --disable-static \
        MPICC="$folder/mpich-cc-pnetcdf" CFLAGS=-O2 && make -C src -j"$(nproc)" && make -C src install
)

build_netcdf_mpich() {
    fetch_source "netcdf=$netcdf_source" "$1" && patch -p1 -d "$1" <"$version_patch" || return 1
    "$venv/bin/cmake" -G Ninja -S "$1" -B "$1/build" -DCMAKE_C_COMPILER="$folder/mpich-cc-library" \
        -DCMAKE_INSTALL_PREFIX="$2" -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_SKIP_RPATH=ON -DCMAKE_BUILD_TYPE=Release \
        -DENABLE_HDF5=ON -DHDF5_C_LIBRARY="$hdf5/lib/libhdf5.so" -DHDF5_HL_LIBRARY="$hdf5/lib/libhdf5_hl.so" \
        -DHDF5_INCLUDE_DIR=/usr/include/hdf5/mpich -DHDF5_VERSION=1.10.8 -DENABLE_PNETCDF=ON \
        -DPNETCDF="$2/lib/libpnetcdf.so" -DPNETCDF_INCLUDE_DIR="$2/include" -DENABLE_DAP=OFF -DENABLE_BYTERANGE=OFF \
        -DENABLE_NCZARR=OFF -DENABLE_LIBXML2=OFF -DENABLE_PLUGINS=OFF -DENABLE_TESTS=OFF -DENABLE_EXAMPLES=OFF \
        -DBUILD_UTILITIES=OFF && "$venv/bin/cmake" --build "$1/build" --target install
}

# The tree with both libraries for MPICH, built unless it is there; its path goes to netcdf.tree.
build_tree() {
    local store step
    store=$(store_of "netcdf-c-$netcdf_source-$(short_digest "$version_patch")-pnetcdf-$pnetcdf_source-$mpi" libhdf5-mpich-dev)
    if [[ ! -d $store ]]; then
        command -v apt-get >/dev/null || { say "PnetCDF for MPICH is built from Debian's sources, and this is no Debian"; return 1; }
        say "building PnetCDF and netCDF-C for MPICH (a minute or two, once; log: $folder/netcdf-c.log)"
        rm -rf "$store.part"
        for step in pnetcdf netcdf; do
            "build_${step}_mpich" "$folder/src/$step" "$store.part" >>"$folder/netcdf-c.log" 2>&1 ||
                { say "$step: $(cause "$folder/netcdf-c.log")"; return 1; }
        done
        rm -rf "$store.part"/lib/{*.la,cmake,pkgconfig} "$store.part"/bin/*-config "$store.part/share" "$folder/src"
        mv "$store.part" "$store"
    fi
    echo "$store" >"$folder/netcdf.tree"
}

# netCDF-C's header does not name two filters that it declares: Debian's has both (libnetcdf.settings), ours neither.
build_netcdf() {
    local store prefix package cc flags
    rm -f "$folder"/netcdf.{wheel,tree} "$folder"/{netcdf-c,netCDF4}.log
    if [[ $mpi == openmpi ]]; then
        prefix=/usr/lib/$(gcc -print-multiarch)/netcdf/pnetcdf package=libnetcdf-pnetcdf-dev cc=mpicc.openmpi
        flags='-DNC_HAS_BZ2=1 -DNC_HAS_BLOSC=1'
    else
        build_tree || return 1
        prefix=$(<"$folder/netcdf.tree") package=libhdf5-mpich-dev cc=$folder/mpich-cc-extension
        flags='-DNC_HAS_BZ2=0 -DNC_HAS_BLOSC=0'
    fi
    store=netCDF4-$netcdf4_version-$(short_digest "$rc_header")-$mpi-$netcdf_source-$(python_versions)
    store=$(store_of "$store" "$package")
    if ! compgen -G "$store/netcdf4-*.whl" >/dev/null; then
        say "building netCDF4 $netcdf4_version with parallel HDF5 and PnetCDF (half a minute, once; log: $folder/netCDF4.log)"
        build_wheel "$store" netCDF4 "$netcdf4_version" CC="$cc" USE_NCCONFIG=0 HDF5_DIR="$hdf5" NETCDF4_DIR="$prefix" \
            CFLAGS="-O1 -g0 $flags -include $PWD/$rc_header" || return 1
        say "netCDF4 is built"
    fi
    compgen -G "$store/netcdf4-*.whl" | head -n 1 >"$folder/netcdf.wheel"
}

# ---- jobs and installation -------------------------------------------------------------------------------------------

start_builds() {
    hdf5=/usr/lib/$(gcc -print-multiarch)/hdf5/$mpi
    fresh "${h5py[@]}" && fresh "${netcdf[@]}" && return
    [[ $mpi == openmpi ]] || link_mpich
    set -m # process groups of their own, so that a failure of the set-up ends all of them
    if ! fresh "${netcdf[@]}"; then
        build_netcdf 9>&- &
        netcdf_job=$!
    fi
    if ! fresh "${h5py[@]}"; then
        build_h5py 9>&- &
        h5py_job=$!
    fi
    set +m
    trap 'for job in $h5py_job $netcdf_job; do kill -- "-$job" 2>/dev/null || true; done' EXIT
}

# newest LOG...: the log that was written to last.
newest() { ls -t "$@" 2>/dev/null | head -n 1 || true; }

# finish JOB NAME LOG...: wait for a build, saying now and then how far it is.
finish() {
    local began=$SECONDS log
    while kill -0 "$1" 2>/dev/null; do
        timeout 20 tail --pid="$1" -f /dev/null && break
        log=$(newest "${@:3}")
        say "waiting for the build of $2, $((SECONDS - began)) s so far: $(tail -n 1 "${log:-/dev/null}" | cut -c 1-70)"
    done
    wait "$1"
}

# checked MODULE EXPRESSION: the module is there, the expression holds, and it brought no second MPI library.
checked() {
    "$venv/bin/python" -c '
import importlib, mpi4py, os, re, sys
mpi4py.rc.initialize = False
import mpi4py.MPI
module = importlib.import_module(sys.argv[1])
mapped = {line.split()[-1] for line in open("/proc/self/maps") if re.search(r"/libmpi(ch)?\.so", line)}
mpis = {path for path in mapped if os.path.getsize(path) > 100_000} # not the empty library
parallel = bool(eval(sys.argv[2], {"m": module}))
sys.exit(None if parallel and len(mpis) == 1 else f"{sys.argv[1]}: parallel: {parallel}; MPI: {sorted(mpis)}")
' "$@"
}

install_h5py() {
    finish "$h5py_job" h5py "$folder/h5py.log" || fail "parallel h5py could not be built (log: $folder/h5py.log)"
    h5py_job=
    pip_install --no-deps --force-reinstall "$(<"$folder/h5py.wheel")"
    checked h5py 'm.get_config().mpi' || fail "this h5py is not parallel or brings another MPI"
    done_with "${h5py[@]}"
}

install_netcdf() {
    local logs=("$folder"/{netcdf-c,netCDF4}.log) built=yes
    finish "$netcdf_job" netCDF4 "${logs[@]}" || built=no
    netcdf_job=
    [[ ! -e $folder/netcdf.tree ]] || cp -a "$(<"$folder/netcdf.tree")/." "$venv/"
    if [[ $built == no ]]; then
        say "going on without netCDF4$([[ $mpi == openmpi || -e $folder/netcdf.tree ]] || echo ' and PnetCDF'); the" \
            "next set-up tries again (log: $(newest "${logs[@]}"))"
        return
    fi
    pip_install --no-deps --force-reinstall "$(<"$folder/netcdf.wheel")"
    if ! checked netCDF4 'm.__has_parallel4_support__ and m.__has_pnetcdf_support__'; then
        "$venv/bin/python" -m pip uninstall -q -y netCDF4
        say "without netCDF4: what was built lacks parallel HDF5 or PnetCDF, or brings another MPI"
        return
    fi
    done_with "${netcdf[@]}"
}

install_built() {
    [[ -z $netcdf_job ]] || install_netcdf
    [[ -z $h5py_job ]] || install_h5py
}
