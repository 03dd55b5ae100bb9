/* mpiox_delegate_main.h - what the executable mpiio-ext-delegate does: as MPI spawned it, or as `serve`, its keeper. */
#ifndef MPIOX_DELEGATE_MAIN_H
#define MPIOX_DELEGATE_MAIN_H

int mpiox_delegate_main(int argc, char **argv); /* returns the exit status */

#endif
