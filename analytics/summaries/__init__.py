"""One row of scalars, and time-resolved slices, for each job: everything that is known of its I/O, joined.

:func:`summarize.summarize` makes them, :mod:`.files` stores and reads them, :mod:`.joins` joins them to the tables of
the store. Source: TOKIO, Section "Data integration".
"""
