"""One page about one run: the program's accesses, the library's work, and the remedies.

=============  =================================================================================================
`gather`       a folder of recordings, or a Darshan log, as one document of plain values
`opening`      its first sentences
`failed`       how it has failed, where it has
`files`        how each file was accessed
`machine`      whether the machine had room for the run
`library`      what the library did for each file, and which hints were in force
`over_time`    bytes over time
`page`         the document as a page
`shown`        the document as objects of Python
=============  =================================================================================================
"""
