"""Modules that every part of mpiio_ext uses and that use no part: units, options of commands, files, documents."""
