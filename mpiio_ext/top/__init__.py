"""``mpiio-ext top``: running jobs, watched from outside.

Layers, each of which imports only those above it:

==================  ==================================================================================================
`pages`             what one rank says of itself, read from its memory
`names`             what jobs are called
`jobs`              the ranks of this user on this node, by job, and how fast their numbers move
`snapshot`          a job with its delegates and its arbiter at one moment; as JSON
`tables`            the same in words
`fitting`           tables in the room of a terminal
`screen`            on a terminal
==================  ==================================================================================================
"""
