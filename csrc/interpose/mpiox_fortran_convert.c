/* mpiox_fortran_convert.c - see mpiox_fortran_convert.h. */
#include "mpiox_fortran_convert.h"

#ifdef OPEN_MPI

#include <stdlib.h>
#include <string.h>

/* Defined in libmpi. Weak, so that an Open MPI without Fortran can be used too. A Fortran program may hold its own copy
 * of the common block; the dynamic linker then binds every library, this one included, to that copy. */
extern MPI_Fint mpi_fortran_bottom_ __attribute__((weak));
extern MPI_Fint mpi_fortran_status_ignore_ __attribute__((weak));

char *mpiox_fortran_string(const char *text, int length)
{
    char *copy;

    while (length > 0 && text[length - 1] == ' ')
        length--;
    copy = malloc((size_t)length + 1);
    if (copy == NULL)
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

void *mpiox_fortran_buffer(void *buffer)
{
    return buffer == (void *)&mpi_fortran_bottom_ ? MPI_BOTTOM : buffer;
}

void mpiox_fortran_result(MPI_Fint *ierror, int result)
{
    if (ierror != NULL)
        *ierror = (MPI_Fint)result;
}

#else
typedef int mpiox_fortran_c_not_needed;
#endif
