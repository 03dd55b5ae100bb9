/* mpiox_opener.c - the walks over all openers. See mpiox_opener.h. */
#include "mpiox_opener.h"

#include <assert.h>

static bool is_refused(const mpiox_opening *opening)
{
    return opening->decision->error.code != MPIOX_OK;
}

bool mpiox_opener_stores(const mpiox_hints *hints)
{
    bool any = false;

    for (int k = 0; k < MPIOX_OPENERS; k++)
        any |= mpiox_openers[k]->stores != NULL && mpiox_openers[k]->stores(hints);
    return any;
}

void mpiox_opener_decide(mpiox_opening *opening)
{
    mpiox_decision *decision = opening->decision;

    assert(opening->rank == 0 && decision->decided == 0 && !decision->late);
    while (decision->decided < MPIOX_OPENERS && !decision->late && !is_refused(opening)) {
        const int k = decision->decided;

        decision->late = mpiox_openers[k]->decide != NULL && !mpiox_openers[k]->decide(opening, &opening->state[k]);
        decision->decided += !decision->late;
    }
}

bool mpiox_opener_start(mpiox_opening *opening)
{
    mpiox_decision *decision = opening->decision;

    assert(decision->decided >= 0 && decision->decided <= MPIOX_OPENERS);
    if (decision->late) {
        for (int k = decision->decided; k < MPIOX_OPENERS; k++)
            if (mpiox_openers[k]->start != NULL && !mpiox_openers[k]->start(opening, &opening->state[k]))
                return false;
        if (PMPI_Bcast(decision, sizeof *decision, MPI_BYTE, 0, opening->comm) != MPI_SUCCESS)
            return false;
    }
    for (int k = 0; k < MPIOX_OPENERS; k++)
        if (mpiox_openers[k]->follow != NULL)
            mpiox_openers[k]->follow(opening);
    return true;
}

bool mpiox_opener_has_changed(mpiox_opening *opening)
{
    bool changed = false;

    for (int k = 0; k < MPIOX_OPENERS && !changed; k++)
        changed = mpiox_openers[k]->has_changed != NULL && mpiox_openers[k]->has_changed(opening);
    return changed;
}

/* In reverse order: an opener may need what a later one has done. */
int mpiox_opener_keep(mpiox_opening *opening, mpiox_error *error, bool *abandoned)
{
    mpiox_error_clear(error);
    *abandoned = false;
    for (int k = MPIOX_OPENERS - 1; k >= 0 && error->code == MPIOX_OK; k--)
        if (mpiox_openers[k]->keep != NULL)
            mpiox_openers[k]->keep(opening, &opening->state[k], abandoned, error);
    return error->code;
}

void mpiox_opener_abandon(mpiox_opening *opening)
{
    for (int k = 0; k < MPIOX_OPENERS; k++)
        if (mpiox_openers[k]->abandon != NULL)
            mpiox_openers[k]->abandon(opening, &opening->state[k]);
}

const char *mpiox_opener_discard(const char *path, char room[PATH_MAX], void *held[MPIOX_OPENERS])
{
    const char *name = NULL;

    for (int k = 0; k < MPIOX_OPENERS && name == NULL; k++)
        name = mpiox_openers[k]->discard != NULL ? mpiox_openers[k]->discard(path, room, &held[k]) : NULL;
    return name;
}

void mpiox_opener_discarded(const char *name, void *held[MPIOX_OPENERS])
{
    for (int k = 0; k < MPIOX_OPENERS; k++)
        if (mpiox_openers[k]->discarded != NULL)
            mpiox_openers[k]->discarded(name, held[k]);
}

bool mpiox_opener_await(const char *path)
{
    bool whole = true;

    for (int k = 0; k < MPIOX_OPENERS; k++)
        whole &= mpiox_openers[k]->await == NULL || mpiox_openers[k]->await(path);
    return whole;
}

const mpiox_opener *mpiox_opener_of(const mpiox_opening *opening, void **state)
{
    int k = 0;

    assert(opening->decision->container);
    while (mpiox_openers[k]->close == NULL)
        k++;
    *state = opening->state[k];
    return mpiox_openers[k];
}

void mpiox_opener_to_info(const mpiox_opener *of, MPI_Info info, int32_t parts, int64_t unit)
{
    for (int k = 0; k < MPIOX_OPENERS; k++)
        if (mpiox_openers[k]->to_info != NULL)
            mpiox_openers[k]->to_info(info, mpiox_openers[k] == of ? parts : 0, unit);
}
