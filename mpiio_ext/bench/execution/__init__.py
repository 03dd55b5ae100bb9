"""The runner: programs played through interfaces, on the clock, with every byte verified.

==================  ==================================================================================================
`values`            the value of every byte, a pure function of its place
`content`           what a program's accesses must write and find
`agreement`         ranks that agree: on time, on errors; `last_words` of a rank that the others do not come back to
`counters`          columns from what the extension and the operating system counted
`case`              one thing to run: a program through an interface
`player`            a phase of a program on this rank, on the clock
`verify`            the files against the content
`runner`            which run comes when; one run with its phases, checks and rows
`afford`            the size that a slow native path can afford
`schedule`          repetitions within the budget
==================  ==================================================================================================
"""
