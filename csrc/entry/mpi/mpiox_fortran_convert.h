/*
 * mpiox_fortran_convert.h - conversions between Fortran and C arguments, used by the generated entry points (Open MPI
 * only).
 *
 * Special addresses: MPI_BOTTOM and MPI_STATUS_IGNORE are common blocks of Open MPI's Fortran bindings (the mpi_f08
 * module binds to the same symbols), recognised by address. Logicals: .false. is 0 for every compiler that Open MPI
 * supports; .true. is stored as 1, which every one of them reads as true.
 */
#ifndef MPIOX_FORTRAN_CONVERT_H
#define MPIOX_FORTRAN_CONVERT_H

#include <mpi.h>
#include <stdbool.h>

/* A C string (free it) without the blanks at both ends of the Fortran one, as Open MPI's binding makes it; NULL when
 * memory is exhausted. */
char *mpiox_fortran_string(const char *text, int length);
/* Copy a C string into a Fortran one of `length` characters, padded with blanks, cut when too long. */
void mpiox_fortran_pad(const char *text, char *target, int length);
bool mpiox_fortran_status_ignored(const MPI_Fint *status);
/* C handles of `count` Fortran ones; NULL when memory is exhausted. _back stores their new values and frees them. */
MPI_Request *mpiox_fortran_requests(const MPI_Fint *requests, MPI_Fint count);
void mpiox_fortran_requests_back(MPI_Request *handles, MPI_Fint *requests, MPI_Fint count);
/* The same for statuses; MPI_STATUSES_IGNORE when the program ignores them, or when memory is exhausted. */
MPI_Status *mpiox_fortran_statuses(const MPI_Fint *statuses, MPI_Fint count);
void mpiox_fortran_statuses_back(MPI_Status *converted, MPI_Fint *statuses, MPI_Fint count);
/* Index into an array, which counts from 1 in Fortran. */
MPI_Fint mpiox_fortran_index(MPI_Fint index);
/* The C address for a Fortran choice buffer. */
void *mpiox_fortran_buffer(void *buffer);
/* Store the result in *ierror, which is optional in mpi_f08 (then NULL). */
void mpiox_fortran_result(MPI_Fint *ierror, int result);

#endif
