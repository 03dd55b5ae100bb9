"""Reports of the analytics: one HTML page of a store, or of one job.

=============  ======================================================================================================
`drawing`      figures as SVG, by Matplotlib
`pen`          a process that draws while the queries run
`start`        what keeps a command that makes a page quick
`interactive`  figures as Plotly's, for ``--interactive``
`page`         the HTML
`store`        what the page of a store shows
`job`          what the page of a job shows
`bench`        the report of the bench, with a section that says why methods were slower
=============  ======================================================================================================
"""
