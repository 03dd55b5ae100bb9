/* mpiox_service_main.h - what mpiio-ext-delegate does: started by MPI, or with `serve` as a supervisor. */
#ifndef MPIOX_SERVICE_MAIN_H
#define MPIOX_SERVICE_MAIN_H

int mpiox_service_main(int argc, char **argv); /* returns the exit status */

#endif
