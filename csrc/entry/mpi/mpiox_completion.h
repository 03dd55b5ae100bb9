/*
 * mpiox_completion.h - MPI_Wait, MPI_Test and their kin, as their MPI namesakes. They go straight to PMPI while no
 * nonblocking data access of this library exists; that costs one load.
 */
#ifndef MPIOX_COMPLETION_H
#define MPIOX_COMPLETION_H

#include <mpi.h>

int mpiox_wait(MPI_Request *request, MPI_Status *status);
int mpiox_waitall(int count, MPI_Request *requests, MPI_Status *statuses);
int mpiox_waitany(int count, MPI_Request *requests, int *index, MPI_Status *status);
int mpiox_waitsome(int incount, MPI_Request *requests, int *outcount, int *indices, MPI_Status *statuses);
int mpiox_test(MPI_Request *request, int *flag, MPI_Status *status);
int mpiox_testall(int count, MPI_Request *requests, int *flag, MPI_Status *statuses);
int mpiox_testany(int count, MPI_Request *requests, int *index, int *flag, MPI_Status *status);
int mpiox_testsome(int incount, MPI_Request *requests, int *outcount, int *indices, MPI_Status *statuses);
int mpiox_request_get_status(MPI_Request request, int *flag, MPI_Status *status);
int mpiox_request_get_status_all(int count, const MPI_Request *requests, int *flag, MPI_Status *statuses);
int mpiox_request_get_status_any(int count, const MPI_Request *requests, int *index, int *flag, MPI_Status *status);
int mpiox_request_get_status_some(int incount, const MPI_Request *requests, int *outcount, int *indices,
                                  MPI_Status *statuses);

#endif
