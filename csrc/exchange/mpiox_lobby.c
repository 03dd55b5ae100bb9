/* mpiox_lobby.c - see mpiox_lobby.h. */
#include "mpiox_lobby.h"

#include <limits.h>
#include <stdatomic.h>
#include <string.h>

#include "mpiox_wait.h"

enum { LINE = 64 };

typedef struct ballot { /* of one rank; its own cache line */
    _Alignas(LINE) int values[MPIOX_LOBBY_VOTES];
} ballot;

struct mpiox_lobby_page {
    _Alignas(LINE) mpiox_word told;           /* times that rank 0 has told something */
    _Alignas(LINE) mpiox_word heard;          /* times that somebody has read it */
    _Alignas(LINE) _Atomic uint32_t arrived;  /* ranks that have voted in the vote under way */
    _Alignas(LINE) mpiox_word counted;        /* votes that are over */
    int lowest[MPIOX_LOBBY_VOTES];            /* of the last vote; nobody starts another before all have read it */
    _Alignas(LINE) char note[2][MPIOX_LOBBY_NOTE_BYTES]; /* rank 0 may be one vote ahead of who reads */
    _Alignas(LINE) char text[MPIOX_LOBBY_TOLD_BYTES];
    ballot ballots[]; /* [size] */
};

int64_t mpiox_lobby_bytes(int size) {
    return (int64_t) sizeof(mpiox_lobby_page) + (int64_t) size * (int64_t) sizeof(ballot);
}

void mpiox_lobby_begin(mpiox_lobby *lobby, void *memory, MPI_Comm comm, int rank, int size) {
    *lobby = (mpiox_lobby) {.page = memory, .comm = comm, .rank = rank, .size = size};
}

/* Other ranks may need this one's MPI library on their way here. */
static bool poke(void *context) {
    int flag;
    PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, ((mpiox_lobby *) context)->comm, &flag, MPI_STATUS_IGNORE);
    return false;
}

void mpiox_lobby_tell(mpiox_lobby *lobby, void *data, int64_t bytes) {
    mpiox_lobby_page *page = lobby->page;
    const mpiox_idle idle = {poke, lobby};
    const uint32_t listeners = (uint32_t) lobby->size - 1;
    if (lobby->rank == 0) {
        mpiox_wait_reach(&page->heard, lobby->told * listeners, &idle);
        memcpy(page->text, data, (size_t) bytes);
        mpiox_word_set(&page->told, ++lobby->told);
    } else {
        mpiox_wait_reach(&page->told, ++lobby->told, &idle);
        memcpy(data, page->text, (size_t) bytes);
        mpiox_word_add(&page->heard);
    }
}

/* By the last rank to arrive, while the others wait. */
static void count(mpiox_lobby *lobby) {
    mpiox_lobby_page *page = lobby->page;
    for (int v = 0; v < MPIOX_LOBBY_VOTES; v++) {
        page->lowest[v] = INT_MAX;
        for (int r = 0; r < lobby->size; r++)
            if (page->ballots[r].values[v] < page->lowest[v])
                page->lowest[v] = page->ballots[r].values[v];
    }
}

void mpiox_lobby_vote(mpiox_lobby *lobby, int values[MPIOX_LOBBY_VOTES], void *note, int64_t bytes) {
    mpiox_lobby_page *page = lobby->page;
    const mpiox_idle idle = {poke, lobby};
    const uint32_t vote = ++lobby->voted;
    memcpy(page->ballots[lobby->rank].values, values, sizeof page->ballots[0].values);
    if (lobby->rank == 0)
        memcpy(page->note[vote % 2], note, (size_t) bytes);
    if (atomic_fetch_add(&page->arrived, 1) + 1 == (uint32_t) lobby->size) {
        atomic_store(&page->arrived, 0);
        count(lobby);
        mpiox_word_set(&page->counted, vote);
    } else {
        mpiox_wait_reach(&page->counted, vote, &idle);
    }
    memcpy(values, page->lowest, sizeof page->lowest);
    memcpy(note, page->note[vote % 2], (size_t) bytes);
}
