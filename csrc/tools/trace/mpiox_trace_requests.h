/* mpiox_trace_requests.h - the nonblocking accesses that are not complete. */
#ifndef MPIOX_TRACE_REQUESTS_H
#define MPIOX_TRACE_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct mpiox_trace_request {
    int64_t request; /* MPI_Request */
    int64_t number;  /* from 1 on, in the order in which they were started */
    int64_t handle;  /* MPI_File */
    int32_t file;
} mpiox_trace_request;

/* Returns the number of the access; 0: there are too many. */
int64_t mpiox_trace_request_add(int64_t request, int64_t handle, int32_t file);
bool mpiox_trace_requests_any(void);
bool mpiox_trace_request_is(int64_t request);
/* Take one out; false: it is not there. */
bool mpiox_trace_request_take(int64_t request, mpiox_trace_request *found);

#endif
