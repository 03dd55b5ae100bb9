/*
 * mpiox_exchange.h - two-phase collective read and write over file domains.
 *
 * Inside a node every rank copies its pieces straight between its own memory and the aggregators' collective buffers in
 * shared memory; between nodes leaders exchange one combined message per node pair and round. See mpiox_rounds.c and
 * docs/architecture.md. Everything here that takes a mpiox_exchange is collective over the file's communicator and
 * blocking, unless it says local.
 */
#ifndef MPIOX_EXCHANGE_H
#define MPIOX_EXCHANGE_H

#include <mpi.h>
#include <stdbool.h>

#include "mpiox_access.h"
#include "mpiox_hints.h"
#include "mpiox_layout.h"
#include "mpiox_stats.h"

typedef struct mpiox_exchange mpiox_exchange;

/* Open our own path to a file that PMPI_File_open has just opened on comm (an intracommunicator; it is duplicated or a
 * cached duplicate of the same group is taken). amode: MPI_MODE_*. Agreed by all ranks: either every rank gets an
 * exchange, or every rank gets MPIOX_E_UNSUPPORTED (the file stays native) and *out == NULL. */
int mpiox_exchange_open(MPI_Comm comm, const char *path, int amode, const mpiox_hints *hints, mpiox_exchange **out);
/* Free it in any case. Errors that the file system reports at close are agreed by all ranks: the same *error everywhere.
 * NULL-safe; 0 or MPIOX_E_IO. */
int mpiox_exchange_close(mpiox_exchange *exchange, mpiox_error *error);
/* Bring what this library wrote to stable storage; the same *error on all ranks. 0 or MPIOX_E_IO. */
int mpiox_exchange_sync(mpiox_exchange *exchange, mpiox_error *error);

/* New view on this rank: file byte of stream position p = displacement + offset(view, p). The reference is taken over.
 * Local, but every rank calls it (ranks may pass different views). NULL, or a view that is empty or not monotonic, makes
 * the file's collectives return MPIOX_E_UNSUPPORTED until the next view. */
void mpiox_exchange_set_view(mpiox_exchange *exchange, mpiox_access *view, int64_t displacement);

typedef struct mpiox_request {
    bool write;
    int64_t position;           /* stream position in the view, bytes */
    int64_t length;             /* data bytes of this rank, >= 0 */
    void *buffer;               /* origin of the memory description; not modified by writes */
    const mpiox_access *memory; /* borrowed, tiled from `buffer` on; NULL = contiguous */
    mpiox_error local_error;    /* code != 0: this rank takes part with nothing and everybody gets this error */
} mpiox_request;

typedef struct mpiox_outcome {
    int64_t bytes;     /* data bytes of this rank that were transferred (less than length at end of file) */
    mpiox_error error; /* the same on all ranks; code 0 when all went well */
} mpiox_outcome;

/* Collective data access. Returns outcome->error.code. MPIOX_E_UNSUPPORTED (agreed by all ranks, nothing done): the
 * caller hands the call to PMPI. */
int mpiox_exchange_access(mpiox_exchange *exchange, const mpiox_request *request, mpiox_outcome *outcome);

const mpiox_layout *mpiox_exchange_layout(const mpiox_exchange *exchange); /* local */
const mpiox_stats *mpiox_exchange_stats(mpiox_exchange *exchange); /* local; this rank's counters so far */
int mpiox_exchange_aggregators(const mpiox_exchange *exchange);          /* local; number in force */
int64_t mpiox_exchange_window_bytes(const mpiox_exchange *exchange);     /* local; size of one collective buffer */

/* Drop cached teams and shared memory; from the MPI_Finalize wrapper, before PMPI_Finalize. */
void mpiox_exchange_finalize(void);

#endif
