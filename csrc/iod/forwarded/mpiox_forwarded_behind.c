/*
 * mpiox_forwarded_behind.c - collected writes that a delegate elsewhere did not accept.
 *
 * Problem.   Small writes to a delegate of another node are collected and sent later (write-behind). By then the
 *            delegate may have given their pages away, or be dead, and the calls that made them have returned.
 * Algorithm. The link keeps the writes that were not deposited, in order, and carries out nothing more until a thread
 *            takes them out. The thread that finds them makes the writes again: to the present owners, or to the file.
 *            A link serves all files of the job, so the thread searches the open files for that of each write.
 * Guarantee. A write that was acknowledged at level "memory" is not lost while its rank lives.
 */
#include <stddef.h>

#include "mpiox_forwarded_impl.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static mpiox_forwarded *first; /* of this process */

void mpiox_forwarded_enlist(mpiox_forwarded *forwarded, mpiox_forwarded_rewrite *rewrite)
{
    if (atomic_load(&forwarded->behind.listed))
        return;
    pthread_mutex_lock(&lock);
    if (!atomic_load(&forwarded->behind.listed)) {
        forwarded->behind.rewrite = rewrite;
        forwarded->behind.next = first;
        first = forwarded;
        atomic_store(&forwarded->behind.listed, true);
    }
    pthread_mutex_unlock(&lock);
}

void mpiox_forwarded_delist(mpiox_forwarded *forwarded)
{
    pthread_mutex_lock(&lock);
    for (mpiox_forwarded **at = &first; *at != NULL; at = &(*at)->behind.next) {
        if (*at == forwarded) {
            *at = forwarded->behind.next;
            break;
        }
    }
    atomic_store(&forwarded->behind.listed, false);
    pthread_mutex_unlock(&lock);
}

/* The file that the delegate knows by this index. It stays open: its close settles the link first. */
static mpiox_forwarded *find(const mpiox_service *service, int32_t owner, int32_t index)
{
    mpiox_forwarded *found;

    pthread_mutex_lock(&lock);
    for (found = first; found != NULL; found = found->behind.next) {
        if (found->service == service && owner < found->owners && found->index[owner] == index)
            break;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

typedef struct undelivered {
    const mpiox_service *service;
    int32_t owner;
    mpiox_error *error;
    bool found;
} undelivered;

static int write_again(void *context, const mpiox_link_access *access)
{
    undelivered *u = context;
    mpiox_forwarded *forwarded = find(u->service, u->owner, access->file);

    u->found = true;
    if (forwarded == NULL)
        return mpiox_error_set(u->error, MPIOX_E_IO, 0, -1, -1, "writing what a delegate did not take");
    return forwarded->behind.rewrite(forwarded, access, u->error);
}

int mpiox_forwarded_settle(mpiox_forwarded *forwarded, int32_t owner, bool *found, mpiox_error *error)
{
    undelivered u = {.service = forwarded->service, .owner = owner, .error = error};
    const int code = mpiox_link_take_undelivered(mpiox_forwarded_owner(forwarded, owner)->link, write_again, &u);

    *found = u.found;
    return code;
}

void mpiox_forwarded_drain(mpiox_forwarded *forwarded, mpiox_error *error)
{
    for (int32_t i = 0; i < forwarded->owners; i++) {
        mpiox_link *link = mpiox_forwarded_owner(forwarded, i)->link;
        mpiox_error one = {.code = MPIOX_OK};
        bool found = true;
        int code = MPIOX_OK;

        while (link != NULL && found && mpiox_link_drain(link, &one) != MPIOX_OK && code == MPIOX_OK) {
            one = (mpiox_error){.code = MPIOX_OK};
            code = mpiox_forwarded_settle(forwarded, i, &found, &one);
        }
        if (code != MPIOX_OK && error->code == MPIOX_OK) {
            *error = one;
            error->code = code;
        }
    }
}
