"""Tools that launch the micro-benchmark, a plain MPI program in C, under every MPI at hand.

==================  ==================================================================================================
`peers`             every MPI at hand, with its own MPI-IO and with this library
`launches`          one launch of the micro-benchmark, bounded in time
`hosts`             launches on several hosts of this machine
`compare`           every peer, pattern by pattern
==================  ==================================================================================================
"""
