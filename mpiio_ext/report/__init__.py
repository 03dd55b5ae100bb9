"""The report: results of the bench as one HTML file that needs nothing else, and two sets of results compared.

``mpiio-ext bench report RESULTS... -o report.html`` makes it; docs/howto/read-a-report.md explains what it shows.

Layers, each of which imports only those above it:

==================  ==================================================================================================
`errors`            the one error, a line for people
`load`              files of results, checked field by field; their schema and medians are `common.results`
`words`             numbers and rows in words
`environment`       where the numbers come from, and in what two environments differ
`reproduce`         the command that measures a row again
`verdict`           what all rows together say
`baseline`          two sets of results, row by row
`worth`             how the page begins: a sentence and a picture
`arbitration`       the section about `mpiio-ext bench arbitration`
`page`              the page
==================  ==================================================================================================

Importing this package imports neither MPI nor NumPy nor Matplotlib.
"""
