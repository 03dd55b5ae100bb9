/* mpiox_mpi_agree.c - see mpiox_mpi_agree.h. */
#include "mpiox_mpi_agree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpiox_hints.h"
#include "mpiox_mpi_path.h"
#include "mpiox_mpi_report.h"
#include "mpiox_mpi_same.h"
#include "mpiox_parts.h"
#include "mpiox_print.h"
#include "mpiox_tools.h"
#include "mpiox_topology.h"

static void print_problem(const char *message, void *context)
{
    (void)context;
    mpiox_print("mpiio_ext: %s\n", message);
}

static bool is_wanted(const char *filename, int amode, const mpiox_hints *hints)
{
    return hints->enabled && !(amode & MPI_MODE_SEQUENTIAL) && mpiox_mpi_path_is_posix(filename);
}

/* Of this rank's arguments and what rank 0 has agreed on so far. */
static void begin_opening(mpiox_opening *o, const mpiox_mpi_agreed *agreed)
{
    o->prefixed = mpiox_mpi_path(o->filename) != o->filename;
    o->bare = mpiox_mpi_path_is_posix(o->filename) ? mpiox_mpi_path(o->filename) : NULL;
    o->path_of = mpiox_mpi_path_opened;
    o->name = o->filename;
    o->wanted = agreed->wanted;
    o->why_not = agreed->few_descriptors          ? "few descriptors (ulimit -n)"
                 : !agreed->hints.enabled         ? "mpiox_enable is false"
                 : o->amode & MPI_MODE_SEQUENTIAL ? "MPI_MODE_SEQUENTIAL asks for one"
                                                  : "the MPI library opens it";
}

/* Rank 0's name for the file, where the hints leave room for it. */
static char *name_at_0(mpiox_mpi_agreed *a)
{
    return a->text + (a->text_bytes <= MPIOX_AGREED_TEXT ? a->text_bytes : 0);
}

/* Rank 0, what every file has. *text: hints, to be freed. */
static void decide(mpiox_opening *o, mpiox_mpi_agreed *out, MPI_Info info, char **text)
{
    const char *filename = o->filename;
    const int amode = o->amode;

    mpiox_hints_resolve_and_collect(mpiox_mpi_path(filename), info, &out->hints, text, print_problem, NULL);
    out->text_bytes = *text != NULL && **text != '\0' ? (int64_t)strlen(*text) + 1 : 0;
    if (out->text_bytes > 0 && out->text_bytes <= MPIOX_AGREED_TEXT)
        memcpy(out->text, *text, (size_t)out->text_bytes);
    out->amode = amode;
    mpiox_mpi_same_name(filename, name_at_0(out), (size_t)(out->text + sizeof out->text - name_at_0(out)));
    if (filename[0] == '\0') {
        mpiox_error_set(&out->decision.error, MPIOX_E_IO, ENOENT, -1, -1, "open (rank 0 gives no file name)");
        return;
    }
    out->decision.recheck = mpiox_mpi_path_is_posix(filename) && !(amode & MPI_MODE_EXCL);
    out->run_stats = mpiox_mpi_run_wanted();
    out->recorded = mpiox_parts_are_recorded();
    if (out->hints.stats || out->run_stats) {
        mpiox_stats_identity identity;

        mpiox_stats_identity_get(&identity);
        memcpy(out->run, identity.run, sizeof out->run);
    }
    out->wanted = is_wanted(filename, amode, &out->hints) && !mpiox_tools_hide_files();
    out->few_descriptors = out->wanted && !mpiox_mpi_same_has_descriptors();
    out->wanted = out->wanted && !out->few_descriptors;
    out->waits_hidden = mpiox_tools_hide_waits();
    if (out->wanted)
        out->choice = mpiox_file_choose(o->comm, &out->hints);
    begin_opening(o, out);
    mpiox_opener_decide(o); /* which may wait until a file that was closed has its name */
    out->decision.is_there |= (amode & MPI_MODE_EXCL) && !out->decision.made && mpiox_mpi_path_is_posix(filename) &&
                              (access(mpiox_mpi_path(filename), F_OK) == 0 ||
                               access(filename, F_OK) == 0); /* see mpiox_mpi_path_opened() */
}

/* One broadcast, or two if the text is long. A rank without memory for it, or for the object, lets its MPI library work
 * with the program's own info: that is local, hence no reason to stay behind. */
static int bring(const mpiox_opening *o, mpiox_mpi_agreed *out, char **text, MPI_Info info, MPI_Info *merged)
{
    int result = mpiox_topology_bcast(o->comm, out, (int64_t)sizeof *out);

    if (result == MPI_SUCCESS && out->text_bytes > MPIOX_AGREED_TEXT) {
        if (o->rank != 0)
            *text = malloc((size_t)out->text_bytes);
        if (*text != NULL)
            result = mpiox_topology_bcast(o->comm, *text, out->text_bytes);
        else
            PMPI_Abort(o->comm, 1); /* no memory for a message that the others wait for */
    }
    if (result == MPI_SUCCESS && out->text_bytes > 0 &&
        mpiox_hints_apply(out->text_bytes > MPIOX_AGREED_TEXT ? *text : out->text, info, merged) != MPIOX_OK)
        *merged = MPI_INFO_NULL;
    return result;
}

int mpiox_mpi_agree(mpiox_opening *opening, mpiox_mpi_agreed *agreed, MPI_Info info, MPI_Info *merged, int *differs)
{
    char *text = NULL;

    *merged = MPI_INFO_NULL;
    opening->decision = &agreed->decision;
    opening->hints = &agreed->hints;
    if (opening->rank == 0)
        decide(opening, agreed, info, &text);
    const int result = bring(opening, agreed, &text, info, merged);

    free(text);
    if (result != MPI_SUCCESS)
        return result;
    if (agreed->wanted)
        *differs = mpiox_mpi_same_follow(opening->rank, name_at_0(agreed), agreed->amode, &opening->filename,
                                         &opening->amode);
    if (opening->rank != 0)
        begin_opening(opening, agreed);
    return MPI_SUCCESS;
}

/* A file that was created for this opening cannot change. A file that was opened with MPI_MODE_DELETE_ON_CLOSE cannot
 * be closed and opened again: the MPI library would delete it. */
static bool may_change(const mpiox_decision *decision, int amode)
{
    return decision->recheck && !decision->made && !decision->hidden &&
           (decision->container || !(amode & MPI_MODE_DELETE_ON_CLOSE));
}

void mpiox_mpi_agree_settle(mpiox_mpi_agreed *agreed)
{
    mpiox_decision *decision = &agreed->decision;
    mpiox_file_choice *choice = &agreed->choice;

    decision->recheck = may_change(decision, agreed->amode); /* rank 0's: it may differ where MPI opens the file */
    choice->container = decision->container;
    choice->foreground = agreed->waits_hidden && !decision->container;
    choice->striped = decision->striped;
    choice->recheck = decision->recheck;
    choice->device = decision->device;
    choice->inode = decision->inode;
    choice->id = decision->id;
}
