/* mpiox_hints_openmpi.h - the folder of parameter files of the Open MPI in this process. Private to csrc/core/hints. */
#ifndef MPIOX_HINTS_OPENMPI_H
#define MPIOX_HINTS_OPENMPI_H

/* The folder (Open MPI's sysconfdir); NULL: the MPI library is another one. Found once, never freed. */
const char *mpiox_hints_openmpi_folder(void);

#endif
