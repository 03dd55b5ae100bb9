/*
 * mpiox_lobby.h - how the ranks of one node agree while they open a file, without the MPI library.
 *
 * Problem.   Opening a file takes a broadcast and two agreements. Where ranks outnumber cores an MPI library that spins
 *            takes milliseconds for each, because the rank that is waited for does not get the core.
 * Algorithm. A page of shared memory that belongs to one team: what rank 0 tells the others, and votes that the last rank
 *            to arrive counts. Who waits sleeps (mpiox_wait.h).
 * Promise.   As MPI's collectives: every rank of the team calls the same functions in the same order, one at a time.
 */
#ifndef MPIOX_LOBBY_H
#define MPIOX_LOBBY_H

#include <mpi.h>
#include <stdint.h>

enum { MPIOX_LOBBY_VOTES = 3, MPIOX_LOBBY_TOLD_BYTES = 8192, MPIOX_LOBBY_NOTE_BYTES = 256 };

typedef struct mpiox_lobby_page mpiox_lobby_page; /* in shared memory */

typedef struct mpiox_lobby {
    mpiox_lobby_page *page; /* NULL: there is none */
    MPI_Comm comm;          /* where MPI makes progress while a rank waits; the lobby sends nothing */
    int rank, size;
    uint32_t told, voted; /* calls so far; the same on every rank */
} mpiox_lobby;

/* Bytes of shared, zero-filled memory that `size` ranks need. */
int64_t mpiox_lobby_bytes(int size);
/* Local, once per rank: `memory` stays the caller's and must outlive the lobby. */
void mpiox_lobby_begin(mpiox_lobby *lobby, void *memory, MPI_Comm comm, int rank, int size);

/* Rank 0's `bytes` bytes (at most MPIOX_LOBBY_TOLD_BYTES) reach every rank. Collective; rank 0 does not wait for the
 * others unless they have not heard what was told before. */
void mpiox_lobby_tell(mpiox_lobby *lobby, void *data, int64_t bytes);
/* Every value becomes the lowest that any rank brings; `note` (at most MPIOX_LOBBY_NOTE_BYTES) becomes rank 0's.
 * Collective and synchronising. */
void mpiox_lobby_vote(mpiox_lobby *lobby, int values[MPIOX_LOBBY_VOTES], void *note, int64_t bytes);

#endif
