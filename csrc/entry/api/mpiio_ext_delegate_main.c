/* mpiio_ext_delegate_main.c - the one function that the executable mpiio-ext-delegate calls. */
#include "mpiio_ext.h"

#include "mpiox_service_main.h"

int mpiio_ext_delegate_main(int argc, char **argv)
{
    return mpiox_service_main(argc, argv);
}
