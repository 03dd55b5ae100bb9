/*
 * mpiio_ext_delegate.c - the executable mpiio-ext-delegate, which the library starts
 * (csrc/iod/process, csrc/iod/service).
 *
 * Everything is in the library, so that a delegate is always of the version of the program's library.
 */
#include "mpiio_ext.h"

int main(int argc, char **argv)
{
    return mpiio_ext_delegate_main(argc, argv);
}
