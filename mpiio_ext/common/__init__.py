"""What every part of mpiio_ext uses and what uses none of them: units, options of commands, files, documents."""
