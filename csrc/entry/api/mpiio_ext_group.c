/*
 * mpiio_ext_group.c - the delegates of this process's job, for programs and Python.
 *
 * MPI_Comm differs between MPI libraries, and the header needs no mpi.h, so that communicators come by address.
 */
#include "mpiio_ext.h"

#include <stddef.h>

#include "mpiox_service.h"

static mpiox_process *delegate_of(int index)
{
    mpiox_service *service = mpiox_service_current();

    return service != NULL && index >= 0 && index < service->count ? &service->delegates[index] : NULL;
}

int mpiio_ext_group_count(void)
{
    const mpiox_service *service = mpiox_service_current();

    return service != NULL ? service->count : 0;
}

const char *mpiio_ext_group_mode(void)
{
    const mpiox_service *service = mpiox_service_current();

    return mpiox_service_mode_name(service != NULL ? service->mode : MPIOX_SERVICE_NONE);
}

const char *mpiio_ext_group_id(void)
{
    const mpiox_service *service = mpiox_service_current();

    return service != NULL ? service->id : "";
}

int mpiio_ext_group_node(int index)
{
    const mpiox_process *delegate = delegate_of(index);

    return delegate != NULL ? delegate->node : -1;
}

const char *mpiio_ext_group_host(int index)
{
    const mpiox_process *delegate = delegate_of(index);

    return delegate != NULL ? delegate->host : NULL;
}

int64_t mpiio_ext_group_pid(int index)
{
    const mpiox_process *delegate = delegate_of(index);

    return delegate != NULL ? delegate->pid : 0;
}

int mpiio_ext_group_is_local(int index)
{
    const mpiox_process *delegate = delegate_of(index);

    return delegate != NULL && delegate->local;
}

int mpiio_ext_group_is_serving(int index)
{
    mpiox_process *delegate = delegate_of(index);

    return delegate != NULL && mpiox_process_is_serving(delegate);
}

int mpiio_ext_group_split(const void *comm, int delegates, void *mine)
{
    return mpiox_service_split(*(const MPI_Comm *)comm, delegates, mine);
}
