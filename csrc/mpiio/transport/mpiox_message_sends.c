/* mpiox_message_sends.c - see mpiox_message_sends.h. */
#include "mpiox_message_sends.h"

#include <assert.h>
#include <stdlib.h>

enum { TAGS = 0x1000 }; /* of a kind: more than there are exchange rounds under way */

int mpiox_messages_tag_data(int64_t number)
{
    assert(number >= 0);
    return 1 + (int)(number % TAGS);
}

int mpiox_messages_tag_reply(int64_t number)
{
    return 1 + TAGS + (int)(number % TAGS);
}

void mpiox_messages_fail(mpiox_messages *m, int code, int64_t bytes, const char *what)
{
    mpiox_error error = {.code = MPIOX_OK};
    mpiox_error_set(&error, code, 0, -1, bytes, what);
    mpiox_buffers_fail(m->base.b, &error);
}

void mpiox_sends_complete(mpiox_sends *sends)
{
    sends->reported = false;
}

MPI_Request *mpiox_sends_add(mpiox_messages *m, mpiox_sends *sends, char *copy)
{
    assert(sends->n >= 0 && sends->n <= sends->max);
    if (sends->n == sends->max) {
        const int max = 2 * sends->max + 16;
        MPI_Request *requests = realloc(sends->requests, sizeof *requests * (size_t)max);
        sends->requests = requests ? requests : sends->requests;
        char **copies = requests ? realloc(sends->copies, sizeof *copies * (size_t)max) : NULL;
        if (!copies)
            mpiox_file_give_up(m->base.b->file, MPIOX_E_NOMEM, -1, -1, "sending to other nodes");
        sends->copies = copies;
        sends->max = max;
    }
    sends->copies[sends->n] = copy;
    sends->requests[sends->n] = MPI_REQUEST_NULL;
    return &sends->requests[sends->n++];
}

bool mpiox_sends_test(mpiox_messages *m, mpiox_sends *sends, mpiox_futex *word)
{
    while (sends->n > 0) {
        int done = 1;
        MPI_Request *request = &sends->requests[sends->n - 1];
        if (*request != MPI_REQUEST_NULL && PMPI_Test(request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) {
            mpiox_messages_fail(m, MPIOX_E_MPI, -1, "exchanging messages with another node");
            done = 1; /* its state cannot be queried any more */
        }
        if (!done)
            return false;
        free(sends->copies[--sends->n]);
    }
    if (!sends->reported && word)
        mpiox_futex_add(word);
    sends->reported = true;
    return true;
}

void mpiox_sends_wait(mpiox_messages *m, mpiox_sends *sends, mpiox_futex *word)
{
    const mpiox_part before = mpiox_parts_on(MPIOX_PART_MESSAGES);
    mpiox_backoff backoff = {0};
    while (!mpiox_sends_test(m, sends, word))
        if (m->idle.work(m))
            backoff = (mpiox_backoff){0};
        else
            mpiox_wait_backoff(&backoff);
    mpiox_parts_on(before);
}

void mpiox_messages_reach(mpiox_messages *m, mpiox_futex *word, uint32_t target, mpiox_part part)
{
    const mpiox_part before = mpiox_parts_on(part);
    mpiox_wait_reach(word, target, &m->idle);
    mpiox_parts_on(before);
}
