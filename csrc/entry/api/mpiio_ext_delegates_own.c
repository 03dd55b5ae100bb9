/* mpiio_ext_delegates_own.c - reading the memory of this job's own delegates, which its ranks have mapped already. */
#include "mpiio_ext_delegates_impl.h"

#include <stdlib.h>

#include "mpiox_service.h"

int mpiio_ext_delegates_own(int delegate, mpiio_ext_delegates **delegates)
{
    const mpiox_service *service = mpiox_service_current();

    *delegates = NULL;
    if (service == NULL || delegate < 0 || delegate >= service->count)
        return MPIOX_E_ARG;
    if (!service->delegates[delegate].local || service->delegates[delegate].cache.header == NULL)
        return MPIOX_E_UNSUPPORTED;
    *delegates = calloc(1, sizeof **delegates + 1);
    if (*delegates == NULL)
        return MPIOX_E_NOMEM;
    (*delegates)->cache = service->delegates[delegate].cache;
    return MPIOX_OK;
}
