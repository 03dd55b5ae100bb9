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

#include "mpiox_typemap.h"
#include "mpiox_hints.h"
#include "mpiox_independent.h"
#include "mpiox_layout.h"
#include "mpiox_stats.h"

typedef struct mpiox_exchange mpiox_exchange;

/* Which communicators and shared memory a file will use: rank 0's choice, which the caller spreads before the open. */
typedef struct mpiox_exchange_offer {
    uint64_t team;
    uint64_t nonce; /* makes the name of a hidden file this opening's own */
    int32_t fresh, ranks_per_node;
    int32_t foreground; /* set by the caller: nothing shall be done in the background */
} mpiox_exchange_offer;

/* Rank 0's `bytes` bytes reach every rank of comm: MPI_Bcast, without the MPI library when a file was open on these ranks
 * before, they are on one node, none has MPI_THREAD_MULTIPLE, and the bytes are at most 8192. Collective. MPI_SUCCESS,
 * or MPI_Bcast's code. */
int mpiox_exchange_tell(MPI_Comm comm, void *data, int64_t bytes);
/* Rank 0 only, local. Every offer must be followed by mpiox_exchange_open() on all ranks. */
mpiox_exchange_offer mpiox_exchange_offer_team(MPI_Comm comm, const mpiox_hints *hints);
/* Open our own path to a file that PMPI_File_open has just opened, or failed to open (opened == false), on comm (an
 * intracommunicator). amode: MPI_MODE_*; path NULL: no memory for it. Agreed by all ranks: either every rank gets an
 * exchange, or every rank gets MPIOX_E_UNSUPPORTED (the file stays native) and *out == NULL. *all_opened: opened is true
 * on every rank. *why_not: static text, NULL when there is nothing particular to say. */
int mpiox_exchange_open(MPI_Comm comm, const mpiox_exchange_offer *offer, const char *path, int amode,
                        const mpiox_hints *hints, bool opened, bool *all_opened, mpiox_exchange **out,
                        const char **why_not);
/* Free it in any case. Errors that the file system reports at close are agreed by all ranks: the same *error everywhere.
 * NULL-safe; 0 or MPIOX_E_IO. */
int mpiox_exchange_close(mpiox_exchange *exchange, mpiox_error *error);
/* Bring what this library wrote to stable storage; the same *error on all ranks. 0 or MPIOX_E_IO. */
int mpiox_exchange_sync(mpiox_exchange *exchange, mpiox_error *error);
/* Have the file system set aside space for the first `bytes` bytes and grow the file to at least that size; what is
 * written stays. The same `bytes` and the same *error on all ranks. 0, MPIOX_E_ARG (negative, or ranks differ) or
 * MPIOX_E_IO. */
int mpiox_exchange_preallocate(mpiox_exchange *exchange, int64_t bytes, mpiox_error *error);

/* A new view is coming: can this library do everything with it? `usable` on every rank, agreed (collective, blocking);
 * false at once where mpiox_exchange_background() is false. The shared file pointer starts at 0. */
bool mpiox_exchange_agree_view(mpiox_exchange *exchange, bool usable);
/* After mpiox_exchange_agree_view(): the view stays as it was after all, on every rank. Local. */
void mpiox_exchange_keep_view(mpiox_exchange *exchange);
/* New view on this rank: file byte of stream position p = displacement + offset(view, p). The reference is taken over.
 * Local, but every rank calls it (ranks may pass different views). NULL, or a view that is not taken, makes the file's
 * collectives return MPIOX_E_UNSUPPORTED until the next view. */
void mpiox_exchange_set_view(mpiox_exchange *exchange, mpiox_typemap *view, int64_t displacement);
bool mpiox_exchange_takes_view(const mpiox_typemap *view); /* local; without data, or monotonic */
/* Local, of a view that is taken: the file byte of a stream position (-1: beyond 2^62), and the data bytes of the view
 * that lie before a file byte. */
int64_t mpiox_exchange_byte_offset(const mpiox_exchange *exchange, int64_t position);
int64_t mpiox_exchange_data_before(const mpiox_exchange *exchange, int64_t byte);

/* The shared file pointer, in etypes. Where mpiox_exchange_agree_view() returned true; local, any rank at any time. 0 or
 * MPIOX_E_IO. */
int mpiox_exchange_shared_add(mpiox_exchange *exchange, int64_t etypes, int64_t *old, mpiox_error *error);
int mpiox_exchange_shared_set(mpiox_exchange *exchange, int64_t etypes, mpiox_error *error);
bool mpiox_exchange_all(mpiox_exchange *exchange, bool mine); /* collective: true if every rank says so */
/* Collective: every rank gets the error of the lowest rank that has one, and its code; 0 when there is none. */
int mpiox_exchange_agree_error(mpiox_exchange *exchange, mpiox_error *error);

typedef struct mpiox_outcome {
    int64_t bytes;     /* data bytes of this rank that were transferred (less than length at end of file) */
    mpiox_error error; /* the same on all ranks; code 0 when all went well */
} mpiox_outcome;

/* Collective data access. Returns outcome->error.code. MPIOX_E_UNSUPPORTED (agreed by all ranks, nothing done): the
 * caller hands the call to PMPI. */
int mpiox_exchange_access(mpiox_exchange *exchange, const mpiox_request *request, mpiox_outcome *outcome);

/* Data access of this rank alone, through its view. Local; several threads may be inside at once, also while a
 * collective of another thread is under way. Returns outcome->error.code. */
int mpiox_exchange_independent(mpiox_exchange *exchange, const mpiox_request *request, mpiox_outcome *outcome);
bool mpiox_exchange_view_usable(const mpiox_exchange *exchange); /* local; false: this rank's accesses are not for us */
/* MPI's atomic mode: every access goes straight to the file, under a lock on its range. Local, all ranks call it. */
void mpiox_exchange_set_atomicity(mpiox_exchange *exchange, bool atomic);

/* The same collective from a thread of ours while the program goes on: between the calls of all ranks nothing else may
 * be under way on this exchange. Only where mpiox_exchange_background() says so (the same on all ranks): with one node no
 * MPI call is needed, with several the MPI library must support threads. */
int mpiox_exchange_access_background(mpiox_exchange *exchange, const mpiox_request *request, mpiox_outcome *outcome);
bool mpiox_exchange_background(const mpiox_exchange *exchange);
MPI_Comm mpiox_exchange_comm(const mpiox_exchange *exchange); /* of the file's group; for collectives of the caller's thread */

const mpiox_layout *mpiox_exchange_layout(const mpiox_exchange *exchange); /* local */
const mpiox_stats *mpiox_exchange_stats(mpiox_exchange *exchange); /* local; this rank's counters so far */
int mpiox_exchange_aggregators(const mpiox_exchange *exchange);          /* local; number in force */
int64_t mpiox_exchange_window_bytes(const mpiox_exchange *exchange);     /* local; size of one collective buffer */

/* Drop cached teams and shared memory, while MPI_Finalize runs; what open files use is dropped when they are closed. */
void mpiox_exchange_finalize(void);

#endif
