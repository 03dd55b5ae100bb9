"""Site-independent questions about the I/O system, whatever monitoring tool answers them.

Answers about a period: the bytes that the servers moved (:mod:`.traffic`), their fullness and failovers
(:mod:`.health`), other jobs (:mod:`.others`), the places of a job's nodes (:mod:`.nodes`). Each module gets the results
of connectors (:mod:`mpiio_ext.analytics.sources`) and returns the same form for every source.

Periods are half open, and times explicit (:mod:`.moments`): seconds since 1970 UTC, or datetimes with a zone.

Source: TOKIO, Section "Data integration"; the tools layer of pytokio.
"""
