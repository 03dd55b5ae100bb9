/*
 * mpiox_mpi_openers.c - the plain opener, and the order of all.
 *
 * The opener of hidden names comes first, since a container may get one; the plain opener creates the files that no
 * other opener has created. The opener of delegates comes last: it decides nothing before the file is open. It is the
 * first to report which hints are not in force, before the file has its own name. See mpiox_opener.h.
 */
#include <unistd.h>

#include "mpiox_layout_create.h"
#include "mpiox_opener.h"

/* Rank 0: create the file with the striping that the hints request, if the file system accepts it. A name with a
 * prefix is a file of one name to ROMIO and of another to OMPIO, and requests a driver of the MPI library: the MPI
 * library then creates the file. */
static bool make_striped(mpiox_opening *o, void **state)
{
    const mpiox_layout_wish wish = {o->hints->striping_unit, o->hints->striping_factor, o->hints->start_iodevice};
    const int access_mode = o->amode & (MPI_MODE_RDONLY | MPI_MODE_WRONLY | MPI_MODE_RDWR);
    mpiox_layout_made made;

    (void)state;
    if (o->decision->hidden || o->decision->container || !o->wanted || !(o->amode & MPI_MODE_CREATE) || o->prefixed ||
        (access_mode != MPI_MODE_WRONLY && access_mode != MPI_MODE_RDWR)) /* the MPI library will refuse it */
        return true;
    made = mpiox_layout_create(o->filename, &wish);
    o->decision->made = made != MPIOX_MADE_NOTHING;
    o->decision->striped = made == MPIOX_MADE_STRIPED;
    return true;
}

static bool start(mpiox_opening *o, void **state)
{
    return o->rank != 0 || o->decision->error.code != MPIOX_OK || make_striped(o, state);
}

static void unmake(mpiox_opening *o, void **state)
{
    (void)state;
    if (o->rank == 0 && o->decision->made && !o->decision->hidden && !o->decision->container)
        unlink(o->filename);
}

extern const mpiox_opener mpiox_staged_opener, mpiox_subfiles_opener;
static const mpiox_opener plain = {.decide = make_striped, .start = start, .abandon = unmake};

const mpiox_opener *const mpiox_openers[MPIOX_OPENERS] = {&mpiox_staged_opener, &mpiox_subfiles_opener, &plain,
                                                          &mpiox_delegated_opener};
