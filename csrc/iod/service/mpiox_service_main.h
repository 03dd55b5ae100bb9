/* mpiox_service_main.h - what the executable mpiio-ext-delegate does: as MPI spawned it, or as `serve`, its supervisor.
 * */
#ifndef MPIOX_SERVICE_MAIN_H
#define MPIOX_SERVICE_MAIN_H

int mpiox_service_main(int argc, char **argv); /* returns the exit status */

#endif
