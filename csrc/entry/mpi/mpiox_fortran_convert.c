/* mpiox_fortran_convert.c - see mpiox_fortran_convert.h. */
#include "mpiox_fortran_convert.h"

#ifdef OPEN_MPI

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Defined in libmpi. Weak, so that an Open MPI without Fortran can be used too. A Fortran program may contain its own
 * copy of the common block; the dynamic linker then binds every library, this one included, to that copy. */
#ifndef MPIOX_ANY_MPI
extern MPI_Fint mpi_fortran_bottom_ __attribute__((weak));
extern MPI_Fint mpi_fortran_status_ignore_ __attribute__((weak));
extern MPI_Fint mpi_fortran_statuses_ignore_ __attribute__((weak));
#endif

enum { STATUS_INTEGERS = sizeof(MPI_Status) / sizeof(int) };

char *mpiox_fortran_string(const char *text, int length)
{
    char *copy;

    while (length > 0 && text[length - 1] == ' ')
        length--;
    for (; length > 0 && *text == ' '; length--)
        text++;
    copy = malloc((size_t)length + 1);
    if (!copy)
        return NULL;
    memcpy(copy, text, (size_t)length);
    copy[length] = '\0';
    return copy;
}

void mpiox_fortran_pad(const char *text, char *target, int length)
{
    size_t used = strlen(text);
    if (length < 0)
        return;
    if (used > (size_t)length)
        used = (size_t)length;
    memcpy(target, text, used);
    memset(target + used, ' ', (size_t)length - used);
}

bool mpiox_fortran_status_ignored(const MPI_Fint *status)
{
    return status == &mpi_fortran_status_ignore_ || status == MPI_F_STATUS_IGNORE;
}

MPI_Request *mpiox_fortran_requests(const MPI_Fint *requests, MPI_Fint count)
{
    MPI_Request *handles = malloc(sizeof *handles * (size_t)(count > 0 ? count : 1));

    for (MPI_Fint i = 0; handles && i < count; i++)
        handles[i] = PMPI_Request_f2c(requests[i]);
    return handles;
}

void mpiox_fortran_requests_back(MPI_Request *handles, MPI_Fint *requests, MPI_Fint count)
{
    for (MPI_Fint i = 0; i < count; i++)
        requests[i] = PMPI_Request_c2f(handles[i]);
    free(handles);
}

MPI_Status *mpiox_fortran_statuses(const MPI_Fint *statuses, MPI_Fint count)
{
    MPI_Status *converted;
    if (statuses == &mpi_fortran_statuses_ignore_ || statuses == MPI_F_STATUSES_IGNORE || count <= 0)
        return MPI_STATUSES_IGNORE;
    converted = malloc(sizeof *converted * (size_t)count);
    for (MPI_Fint i = 0; converted && i < count; i++)
        PMPI_Status_f2c(statuses + (ptrdiff_t)i * STATUS_INTEGERS, &converted[i]);
    return converted ? converted : MPI_STATUSES_IGNORE;
}

void mpiox_fortran_statuses_back(MPI_Status *converted, MPI_Fint *statuses, MPI_Fint count)
{
    if (converted == MPI_STATUSES_IGNORE)
        return;
    for (MPI_Fint i = 0; i < count; i++)
        PMPI_Status_c2f(&converted[i], statuses + (ptrdiff_t)i * STATUS_INTEGERS);
    free(converted);
}

MPI_Fint mpiox_fortran_index(MPI_Fint index)
{
    return index == MPI_UNDEFINED ? index : index + 1;
}

void *mpiox_fortran_buffer(void *buffer)
{
    return buffer == (void *)&mpi_fortran_bottom_ ? MPI_BOTTOM : buffer;
}

void mpiox_fortran_result(MPI_Fint *ierror, int result)
{
    if (ierror)
        *ierror = (MPI_Fint)result;
}

#else
typedef int mpiox_fortran_c_not_needed;
#endif
