"""Reports of the analytics: one HTML page of a store, or of one job.

=============================  ========================================================================================
`drawing`                      charts of analyses
`output`                       a store and a job as a page, and a job as text
`store`, `job`                 what the page of a store shows, and that of a job
`bench`                        a section of the report of the bench: why methods were slower
`coverage`                     what a report does not cover
`findings`, `grids`            findings, tables as words
=============================  ========================================================================================
"""
