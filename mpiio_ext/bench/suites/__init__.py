"""Suites: lists of cases for the bench as data, one at a time, with the results sorted by date.

==================  ==================================================================================================
`files`             parameter files (TOML): read, checked entry by entry
`lock`              one suite at a time
`archive`           where results go, and what is kept beside them: environment, logs
==================  ==================================================================================================

The parameter files of the project are in ``data/``; each states the source of its parameters.
"""
