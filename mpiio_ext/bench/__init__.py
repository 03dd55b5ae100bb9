"""The bench: access patterns of parallel codes, written and read under each strategy, with every byte verified.

``mpirun -n 4 python -m mpiio_ext.bench`` runs it; ``--help`` explains its options and docs/bench.md its measurements.

Layers, each of which imports only those above it:

==================  ==================================================================================================
`pattern`           the value of every byte, a pure function of its place in the file
`shapes`            byte layouts (vector, subarray, ...): enumerated by NumPy, or built as an MPI datatype
`workloads`         one module per access pattern: what each rank writes and reads, and which bytes nobody writes
`strategies`        native and the methods of the extension, as sets of hints
`interfaces`        how the bytes travel: MPI-IO, HDF5
`verify`            the file against the formula
`runner`            the measurement: phases, order, repetitions
`results`           the rows, their schema, medians, JSON and Parquet
`table`, `plot`     for people
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
