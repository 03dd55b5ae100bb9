"""Advice: which hint, which strategy of ours, which command, and where it is described.

Every hint that is named here exists (``mpiio-ext hints``); a test looks each of them up.
"""

from __future__ import annotations

import math

from mpiio_ext.analytics.diagnosis.model import Advice

#: Find out what helps instead of guessing.
MEASURE = Advice(
    "Let the tuner find hints for this program, and check them against the MPI library alone.",
    "mpiio-ext tune -- mpirun -n RANKS PROGRAM",
    "docs/howto/find-hints.md",
)
#: Small independent pieces.
DELEGATES = Advice(
    "Small independent accesses: let delegates collect them, without changing the program.",
    "mpirun -n RANKS mpiio-ext run -H mpiox_delegates=per_node=1 -- PROGRAM",
    "docs/explanation/delegates.md",
)
#: Collective calls that aggregators carry out with a small buffer.
LARGER_ROUNDS = Advice(
    "Give aggregators a larger buffer: each request, and each round of the exchange, has as many bytes at most.",
    "mpiio-ext run -H cb_buffer_size=16777216 -- PROGRAM",
    "docs/howto/hints.md",
)
#: Collective writes that leave gaps.
WHOLE_RECORDS = Advice(
    "Write what lies in the gaps with the rest (whole records), or give each field a part of the file of its own:"
    " pieces without gaps become few large requests."
)
#: Chunks of HDF5 that the program accesses in parts, and that its cache has no room for.
CHUNK_CACHE = Advice(
    "Access whole chunks at once, make chunks of what the program accesses at once (H5Pset_chunk), or give the"
    " cache of a dataset room for the chunks in use (H5Pset_chunk_cache; rdcc_nbytes of h5py).",
    see="docs/howto/hdf5.md",
)
#: Fill values, which data then replace.
NO_FILL = Advice(
    "Write no fill values where data follow: H5Pset_fill_time(dcpl, H5D_FILL_TIME_NEVER), nc_set_fill(NC_NOFILL).",
    see="docs/howto/hdf5.md",
)
#: Read-modify-write.
NO_SIEVING = (
    Advice(
        "Let the extension carry the calls out: it writes pieces as they are, and reads nothing for it.",
        "mpirun -n RANKS mpiio-ext run -- PROGRAM",
        "docs/reference/rules.md",
    ),
    Advice(
        "Or forbid the MPI library to do it (ROMIO; other libraries ignore the hint).",
        "mpiio-ext run -H romio_ds_write=disable -- PROGRAM",
        "docs/howto/hints.md",
    ),
)
#: Blocks that the program reads before it overwrites them.
WRITE_WITHOUT_READING = Advice(
    "Do not read blocks that are overwritten as a whole; keep in memory those of which a part changes, and write"
    " each once, when all its changes are known."
)
#: A library moves the data of a file since its header grows.
DEFINE_FIRST = Advice(
    "Define all variables and attributes before the first data are written, or reserve space for the header"
    " (h_minfree of nc__enddef; the hint nc_header_align_size of PnetCDF)."
)
#: The same places are written again and again.
WRITE_ONCE = Advice(
    "Keep in memory what changes, and write it when it is done; or write only what has changed. Where a program"
    " writes all of a variable, turn fill values off (H5Pset_fill_time with H5D_FILL_TIME_NEVER, nc_set_fill with"
    " NC_NOFILL)."
)
#: Small files on many OSTs.
FEWER_STRIPES = Advice(
    "Give small files one stripe: set it for their folder, before they are made.", "lfs setstripe -c 1 DIRECTORY"
)
#: Many small files.
BUNDLE = Advice("Bundle small files: one shared file (HDF5, PnetCDF), or an archive that is unpacked on local storage.")
#: Ranks write between one another.
OWN_REGIONS = Advice(
    "Let each rank write a region of the file that is its own, from a boundary of blocks or stripes on, or use"
    " collective calls: where ranks write between one another, each write may wait for a lock of the file system"
    " that another rank's node has (Lustre, GPFS, BeeGFS).",
    see="docs/explanation/file-domains.md",
)
#: Calls that wait for locks.
NO_LOCKS = Advice(
    "Let ranks write blocks that are theirs alone; collective calls need no locks. If atomic mode"
    " (MPI_File_set_atomicity) is on, leave it off.",
    see="docs/howto/what-to-do.md",
)
#: Syncs after writes.
FEWER_SYNCS = Advice(
    "Sync once, when all is written, or after so much data that the sync takes little of the time; not after each"
    " piece, and not by MPI_File_sync where no other rank reads meanwhile."
)
#: Load by others, or a fault of the storage.
OTHER_LOAD = Advice(
    "Compare with other runs of the program, and with what the servers moved at that time, to separate load"
    " by others from a fault.",
    "mpiio-ext analyze umami --help",
    "docs/howto/program-or-system.md",
)


def use_collective(direction: str) -> Advice:
    """Collective calls instead of independent ones."""
    return Advice(
        f"Use collective calls (MPI_File_{direction}_all, HDF5 with H5FD_MPIO_COLLECTIVE): ranks then exchange their"
        " pieces and aggregators make few large requests.",
        see="docs/howto/what-to-do.md",
    )


def collective_buffering(direction: str) -> Advice:
    """Collective calls that are carried out as they are."""
    return Advice(
        "Switch collective buffering on: the calls are collective, but small requests reach the file system.",
        f"mpiio-ext run -H romio_cb_{direction}=enable -H mpiox_exchange=two_phase -- PROGRAM",
        "docs/howto/hints.md",
    )


def open_once(*, again: bool = True) -> Advice:
    """Opens and closes by MPI-IO, which a process makes of a file several times (`again`), or once."""
    check = "heck whether ranks come to these calls at the same time (time an MPI_Barrier before one)."
    return Advice(f"Open each file once, and keep it open; c{check}" if again else f"C{check}")


def hdf5_metadata(direction: str, *, flushed: bool) -> Advice:
    """HDF5's own metadata, which a program may flush again and again."""
    flush = " Flush (H5Fflush) when a step is done, not after each object." if flushed else ""
    together = "H5Pset_coll_metadata_write" if direction == "write" else "H5Pset_all_coll_metadata_ops"
    return Advice(
        f"Let HDF5 collect its metadata: {together}, H5Pset_libver_bounds (V110), and a larger"
        f" H5Pset_meta_block_size; put values of many small attributes and groups into one dataset.{flush}",
        see="docs/howto/hdf5.md",
    )


def larger_requests(direction: str, *, mpiio: bool = False, hdf5: bool = False, alone: bool = False) -> Advice:
    """Small requests of MPI-IO, of HDF5 without it, or of POSIX; `alone`: of a program that MPI-IO does not help."""
    if mpiio:
        return Advice(
            "Give each call more: one call with a datatype or a view instead of many small ones.",
            see="docs/howto/what-to-do.md",
        )
    reads, speed = direction == "read", "which this library can then speed up by hints alone"
    if hdf5:
        workers = " Let few workers read the same file: each fills a chunk cache of its own." if reads else ""
        return Advice(
            f"{direction.capitalize()} many samples, or whole chunks, by one call; make chunks of what one call"
            f" {direction}s (H5Pset_chunk; chunks of h5py), and give the chunk cache room for the chunks in use"
            " (H5Pset_chunk_cache; rdcc_nbytes of h5py)"
            f"{'.' + workers if alone else f', or open the file by MPI-IO (driver mpio), {speed}.'}",
            see="docs/howto/python-loaders.md",
        )
    buffered = (
        "Read at least 1 MB at once, and take the records from memory"
        if reads
        else "Collect data in a buffer of at least 1 MB before writing"
    )
    return Advice(
        f"{buffered}{'' if alone else f', or go through MPI-IO, HDF5 or PnetCDF, {speed}'}.",
        see="docs/howto/what-to-do.md",
    )


def larger_pieces(*, flushed: bool, plain: bool) -> Advice:
    """Tiny pieces, through the C library, or `plain`, by POSIX."""
    if plain:
        return Advice(
            "Put pieces together in a buffer of at least 1 MB, and do not flush it after each piece (flush=True,"
            " buffering=0 in Python; flush and endl in C++), but when a step is done."
        )
    if flushed:
        return Advice("Do not flush after each piece (fflush, setvbuf with _IONBF or _IOLBF), but when a step is done.")
    return Advice(
        "Put many values together in memory (an array, a line buffer) and hand them over in one fwrite or fread; or"
        " write binary data instead of text."
    )


def come_together(rank: int | None = None) -> Advice:
    """A rank comes late to collective calls; None: perhaps one does."""
    if rank is None:
        return Advice(
            "Check whether ranks arrive at these calls at the same time (time an MPI_Barrier before one), and how much"
            " they exchange: they do not wait for the storage."
        )
    return Advice(
        f"Look at what rank {rank} does before the calls (more work, output, a slow node), not at the storage: the time"
        " in collective calls is that of waiting for it."
    )


def own_offsets(direction: str) -> Advice:
    """A shared file pointer."""
    logs = " Or give each rank a file of its own for logs." if direction == "write" else ""
    return Advice(
        f"Let each rank compute its place (MPI_Exscan of the sizes) and {direction} there"
        f" (MPI_File_{direction}_at_all); the shared pointer makes ranks wait for one another.{logs}"
    )


def read_once(*, again: bool = False, alone: bool = False) -> Advice:
    """Ranks read the same data; `alone`: there is one process."""
    keep = "Keep in memory what is needed again. " if again else ""
    if alone:
        return Advice(keep.strip())
    return Advice(
        f"{keep}Let one rank of the job, or of each node, read the data and broadcast them (MPI_Bcast), or read by"
        " collective calls (MPI_File_read_all): the data then leave the storage once.",
        see="docs/howto/what-to-do.md",
    )


def stripes(processes: float, now: float, osts: int | None) -> list[Advice]:
    """Too many processes per OST; none where the file lies on all of the `osts` that are known to exist."""
    if osts is not None and now >= osts:
        return []
    wanted = int(min(max(2, min(processes, 8 * max(now, 1))), osts or math.inf))
    return [
        Advice(
            "Stripe the file over more OSTs before it is created (an existing file keeps its stripes).",
            f"lfs setstripe -c {wanted} -S 4M DIRECTORY",
        ),
        Advice(
            "The same by hint, for files that MPI-IO creates; with file domains that keep each OST to few aggregators.",
            f"mpiio-ext run -H striping_factor={wanted} -H striping_unit=4M -H mpiox_partition=group_cyclic -- PROGRAM",
            "docs/explanation/file-domains.md",
        ),
    ]


def contact(osts: list[str]) -> list[Advice]:
    """A bad storage target."""
    return [
        Advice(
            "Tell the administrators which OST it is: degraded disks, a rebuild, a full target are seen there.",
            "lfs df -h MOUNT; lctl get_param obdfilter.*.degraded" if osts else "",
        ),
        Advice("Until it is repaired, keep new files off it.", "lfs setstripe -o LIST_OF_GOOD_OSTS DIRECTORY"),
    ]


def aggregators(direction: str, wanted: int, *, fewer: bool = False) -> Advice:
    """One aggregator for all; or `fewer` are better."""
    return Advice(
        "Let fewer processes carry out the collective calls: one for each OST."
        if fewer
        else "Let more processes carry out the collective calls: one or two for each OST, on several nodes.",
        f"mpiio-ext run -H cb_nodes={wanted} -H romio_cb_{direction}=enable -- PROGRAM",
        "docs/howto/hints.md",
    )


def parallel_root(direction: str, *, filled: bool = False) -> Advice:
    """One rank does it all, or few do; `filled`: no MPI-IO call asks for the bytes."""
    instead = "gathering it in few ranks" if direction == "write" else "getting it from few ranks"
    return Advice(
        f"Let all ranks {direction} their part (collective MPI-IO, parallel HDF5, PnetCDF) instead of {instead}."
        + (" Do not fill the file before: with MPI_File_preallocate one rank writes all of it." if filled else ""),
        see="docs/howto/what-to-do.md",
    )


def overlap(direction: str = "write", *, mpi: bool = True, alone: bool = False) -> Advice:
    """Files one after the other; `mpi`: by MPI-IO; `alone`: of one process."""
    ways = ["threads that prefetch" if direction == "read" else "a thread that writes"] if alone else []
    ways += [] if alone else ["groups of ranks each with a file of its own"]
    ways += [f"nonblocking calls (MPI_File_i{direction}_all)"] if mpi else []
    one = "; or write into one file" if direction == "write" else ""
    barriers = "" if alone else " Look for barriers between the files."
    return Advice(f"{direction.capitalize()} the files at the same time: {', or '.join(ways)}{one}.{barriers}")


def at_once(direction: str) -> Advice:
    """Ranks in turn."""
    return Advice(
        f"Let ranks {direction} at the same time, each its own part of the file: look for what lets one go on after the"
        " other (messages from rank to rank, a loop over ranks with a barrier, a lock)."
    )


def metadata(*, again: bool, many: bool = False, stats: bool = False, syncs: bool = False) -> Advice:
    """Opens and the like: the same files again and again, many files, stats, syncs or flushes."""
    sentences = [
        text
        for text, it in (
            ("Open files once, before the loop, and keep them open", again),
            ("Put the data of many small files into few large ones", many),
            ("Let one rank ask for a file (stat), and tell the others", stats and not again),
            ("Do not flush or sync after each piece", syncs),
        )
        if it
    ]
    return Advice(
        f"{'. '.join(sentences or ['Make fewer of these calls: let one rank make them, and tell the others'])}."
    )


def imbalance(by_bytes: bool, collective: bool = True) -> Advice:
    """One rank takes longer than the others; of a program without collective calls no hint helps."""
    if by_bytes and not collective:
        return Advice(
            "Spread the data more evenly over ranks; or use collective calls (MPI-IO, parallel HDF5):"
            " aggregators get equal shares whatever the ranks have.",
            see="docs/howto/what-to-do.md",
        )
    if by_bytes:
        return Advice(
            "Spread the data more evenly over ranks; with collective calls, aggregators get equal shares whatever the"
            " ranks have.",
            "mpiio-ext run -H mpiox_exchange=two_phase -- PROGRAM",
            "docs/howto/hints.md",
        )
    return Advice("Ranks with as much data take longer: look at that rank's node and network, and at the OSTs it uses.")


def align(*, collective: bool) -> Advice:
    """Requests across blocks; hints move only those of collective calls."""
    if not collective:
        return Advice(
            "Begin requests at stripe boundaries (H5Pset_alignment in HDF5), or use collective calls: their file"
            " domains are cut at stripes.",
            see="docs/explanation/file-domains.md",
        )
    return Advice(
        "Begin requests at stripe boundaries: H5Pset_alignment in HDF5; in collectives, file domains cut at stripes.",
        "mpiio-ext run -H mpiox_partition=aligned -H mpiox_stripe_size_io=true -- PROGRAM",
        "docs/explanation/file-domains.md",
    )
