"""Site-independent questions about the I/O system, whatever monitoring tool answers them.

What did the servers move in a period (:mod:`.traffic`), how full were they and what had failed over (:mod:`.health`),
who else ran (:mod:`.others`), where were a job's nodes (:mod:`.nodes`). Each takes what connectors returned
(:mod:`mpiio_ext.analytics.sources`) and gives the same form for every source. :class:`.system.System` finds
the sources of a site, corrects their clocks, and asks these questions.

Periods are half open, and times explicit (:mod:`.moments`): seconds since 1970 UTC, or datetimes with a zone.

Source: TOKIO, Section "Data integration"; the tools layer of pytokio.
"""
