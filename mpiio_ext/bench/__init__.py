"""The bench: access patterns and kernels of parallel codes, run under each strategy, with every byte verified.

``mpirun -n 4 python -m mpiio_ext.bench`` runs it; ``--help`` explains its options and docs/bench.md its measurements.

Layers, each of which imports only those above it:

==================  ==================================================================================================
`pattern`           the value of every byte, a pure function of its place in the file
`shapes`            byte layouts (vector, subarray, ...): enumerated by NumPy, or built as an MPI datatype
`workloads`         one module per access pattern: what each rank writes and reads, and which bytes nobody writes
`strategies`        native and the methods of the extension, as sets of hints
`interfaces`        how the bytes travel: MPI-IO, HDF5
`verify`            the file against the formula
`runner`            measuring a pattern: phases, order of the strategies
`stores`            how the bytes of kernels travel: POSIX, MPI-IO, HDF5, PnetCDF, netCDF-4
`kernels`           one module per application: what each rank does, played through a store, and measured
`results`           the rows, their schema, medians, JSON and Parquet
`suites`            parameter files, one suite at a time, archive, batch scripts
`options`           the command line
`work`, `record`    what runs, decided before anything runs, and how it is recorded
`schedule`          repetitions over patterns and kernels, within the budget
`table`, `plot`     for people; `preview`: what would be run
`bench`             all of it, from options to files
==================  ==================================================================================================

Beside them, for ``python -m mpiio_ext.bench compare`` and ``scaling``, which launch a C kernel and are no MPI programs:

==================  ==================================================================================================
`peers`             every MPI at hand, with its own MPI-IO and with this library
`launches`          one launch of the kernel, bounded in time and memory
`compare`           every peer, pattern by pattern
`scaling`           native and this library against the number of ranks and of pieces; `scaling_plot` draws it
==================  ==================================================================================================

Importing this package imports neither MPI nor h5py.
"""
