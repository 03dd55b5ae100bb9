/*
 * undefine.c - preloaded under a program: a chosen MPI call of the library under test fails as calls do whose peer has
 * died: with an error, and with nothing that can be relied on in what it returns.
 *
 *   undefine_arm(name, n)  the n-th (from 0) call of PMPI_NAME by the library from now on fails; "": none
 *   undefine_calls(name)   how many calls of PMPI_NAME the library has made since
 *   undefine_done()        has the chosen one failed?
 *
 * The call is carried out, so that ranks whose call does not fail do not wait for ever. Then its results are
 * overwritten, and memcheck is told that they are undefined; except for PMPI_Irecv, whose results lie in memory that
 * other processes write next, unseen by memcheck.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#else
#define VALGRIND_MAKE_MEM_UNDEFINED(at, bytes) ((void)(at), (void)(bytes))
#endif

enum { NAMES = 32, POISON = 0xa5 };

static char chosen[32];
static int countdown = -1, done;
static struct {
    const char *name;
    int calls;
} counted[NAMES];
static struct {
    MPI_Request request;
    void *result;
    size_t bytes;
    int shared;
} marked = {.request = MPI_REQUEST_NULL};

void undefine_arm(const char *name, int n);
int undefine_calls(const char *name);
int undefine_done(void);

void undefine_arm(const char *name, int n)
{
    strncpy(chosen, name, sizeof chosen - 1);
    countdown = name[0] != '\0' ? n : -1;
    done = 0;
    marked.request = MPI_REQUEST_NULL;
    marked.shared = 0;
    memset(counted, 0, sizeof counted);
}

int undefine_calls(const char *name)
{
    for (int i = 0; i < NAMES && counted[i].name != NULL; i++)
        if (strcmp(counted[i].name, name) == 0)
            return counted[i].calls;
    return 0;
}

int undefine_done(void)
{
    return done;
}

static void undefine(void *at, size_t bytes)
{
    if (at == NULL || at == MPI_IN_PLACE || bytes == 0)
        return;
    memset(at, POISON, bytes);
    if (!marked.shared)
        (void)VALGRIND_MAKE_MEM_UNDEFINED(at, bytes);
}

/* Is it the library's call, and the one that shall fail? */
static int chosen_call(const char *name, const void *caller)
{
    Dl_info info;
    int i = 0;

    if (dladdr(caller, &info) == 0 || info.dli_fname == NULL || strstr(info.dli_fname, "libmpiio_ext") == NULL)
        return 0;
    while (i < NAMES - 1 && counted[i].name != NULL && strcmp(counted[i].name, name) != 0)
        i++;
    counted[i].name = name;
    counted[i].calls++;
    return countdown >= 0 && strcmp(name, chosen) == 0 && countdown-- == 0;
}

static size_t bytes_of(int n, MPI_Datatype type)
{
    int size = 0;

    PMPI_Type_size(type, &size);
    return (size_t)n * (size_t)size;
}

static int ranks_of(MPI_Comm comm)
{
    int ranks = 0;

    PMPI_Comm_size(comm, &ranks);
    return ranks;
}

static int fail(void *result, size_t bytes)
{
    undefine(result, bytes);
    done = 1;
    return MPI_ERR_OTHER;
}

static int fail_later(MPI_Request request, void *result, size_t bytes)
{
    marked.request = request;
    marked.result = result;
    marked.bytes = bytes;
    return MPI_SUCCESS;
}

#define CHOSEN(name) chosen_call(#name, __builtin_return_address(0))
#define REAL(name, ...)                                                                                                \
    int (*real)(__VA_ARGS__);                                                                                          \
    *(void **)&real = dlsym(RTLD_NEXT, "PMPI_" #name)

/* ---- blocking ---------------------------------------------------------------------------------------------------- */

int PMPI_Bcast(void *buffer, int n, MPI_Datatype type, int root, MPI_Comm comm)
{
    const int chosen_one = CHOSEN(Bcast);

    REAL(Bcast, void *, int, MPI_Datatype, int, MPI_Comm);
    const int code = real(buffer, n, type, root, comm);
    return chosen_one ? fail(buffer, bytes_of(n, type)) : code;
}

int PMPI_Allreduce(const void *from, void *to, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    const int chosen_one = CHOSEN(Allreduce);

    REAL(Allreduce, const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
    const int code = real(from, to, n, type, op, comm);
    return chosen_one ? fail(to, bytes_of(n, type)) : code;
}

int PMPI_Reduce(const void *from, void *to, int n, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm)
{
    const int chosen_one = CHOSEN(Reduce);
    int rank;

    REAL(Reduce, const void *, void *, int, MPI_Datatype, MPI_Op, int, MPI_Comm);
    const int code = real(from, to, n, type, op, root, comm);
    PMPI_Comm_rank(comm, &rank);
    return chosen_one ? fail(rank == root ? to : NULL, bytes_of(n, type)) : code;
}

int PMPI_Exscan(const void *from, void *to, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    const int chosen_one = CHOSEN(Exscan);

    REAL(Exscan, const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
    const int code = real(from, to, n, type, op, comm);
    return chosen_one ? fail(to, bytes_of(n, type)) : code;
}

int PMPI_Allgather(const void *from, int n, MPI_Datatype type, void *to, int m, MPI_Datatype other, MPI_Comm comm)
{
    const int chosen_one = CHOSEN(Allgather);

    REAL(Allgather, const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm);
    const int code = real(from, n, type, to, m, other, comm);
    return chosen_one ? fail(to, bytes_of(m, other) * (size_t)ranks_of(comm)) : code;
}

/* A communicator that has not come about: its handle says nothing. */
static int fail_comm(MPI_Comm *out)
{
    if (*out != MPI_COMM_NULL)
        PMPI_Comm_free(out);
    return fail(out, sizeof *out);
}

int PMPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *out)
{
    const int chosen_one = CHOSEN(Comm_split);

    REAL(Comm_split, MPI_Comm, int, int, MPI_Comm *);
    const int code = real(comm, color, key, out);
    return chosen_one ? fail_comm(out) : code;
}

int PMPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *out)
{
    const int chosen_one = CHOSEN(Comm_split_type);

    REAL(Comm_split_type, MPI_Comm, int, int, MPI_Info, MPI_Comm *);
    const int code = real(comm, type, key, info, out);
    return chosen_one ? fail_comm(out) : code;
}

/* ---- nonblocking ------------------------------------------------------------------------------------------------- */

int PMPI_Iallgather(const void *from, int n, MPI_Datatype type, void *to, int m, MPI_Datatype other, MPI_Comm comm,
                    MPI_Request *request)
{
    const int chosen_one = CHOSEN(Iallgather);

    REAL(Iallgather, const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm, MPI_Request *);
    const int code = real(from, n, type, to, m, other, comm, request);
    return chosen_one ? fail_later(*request, to, bytes_of(m, other) * (size_t)ranks_of(comm)) : code;
}

int PMPI_Iallreduce(const void *from, void *to, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                    MPI_Request *request)
{
    const int chosen_one = CHOSEN(Iallreduce);

    REAL(Iallreduce, const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request *);
    const int code = real(from, to, n, type, op, comm, request);
    return chosen_one ? fail_later(*request, to, bytes_of(n, type)) : code;
}

int PMPI_Ibcast(void *buffer, int n, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request)
{
    const int chosen_one = CHOSEN(Ibcast);

    REAL(Ibcast, void *, int, MPI_Datatype, int, MPI_Comm, MPI_Request *);
    const int code = real(buffer, n, type, root, comm, request);
    return chosen_one ? fail_later(*request, buffer, bytes_of(n, type)) : code;
}

int PMPI_Isend(const void *buffer, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    const int chosen_one = CHOSEN(Isend);

    REAL(Isend, const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
    const int code = real(buffer, n, type, to, tag, comm, request);
    return chosen_one ? fail_later(*request, NULL, 0) : code;
}

int PMPI_Issend(const void *buffer, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    const int chosen_one = CHOSEN(Issend);

    REAL(Issend, const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
    const int code = real(buffer, n, type, to, tag, comm, request);
    return chosen_one ? fail_later(*request, NULL, 0) : code;
}

int PMPI_Irecv(void *buffer, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    const int chosen_one = CHOSEN(Irecv);

    REAL(Irecv, void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
    const int code = real(buffer, n, type, from, tag, comm, request);
    marked.shared |= chosen_one;
    return chosen_one ? fail_later(*request, buffer, bytes_of(n, type)) : code;
}

int PMPI_Imrecv(void *buffer, int n, MPI_Datatype type, MPI_Message *message, MPI_Request *request)
{
    const int chosen_one = CHOSEN(Imrecv);

    REAL(Imrecv, void *, int, MPI_Datatype, MPI_Message *, MPI_Request *);
    const int code = real(buffer, n, type, message, request);
    return chosen_one ? fail_later(*request, buffer, bytes_of(n, type)) : code;
}

int PMPI_Improbe(int from, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status)
{
    const int chosen_one = CHOSEN(Improbe);

    REAL(Improbe, int, int, MPI_Comm, int *, MPI_Message *, MPI_Status *);
    const int code = real(from, tag, comm, flag, message, status);
    if (!chosen_one)
        return code;
    undefine(flag, sizeof *flag);
    undefine(message, sizeof *message);
    return fail(status != MPI_STATUS_IGNORE ? status : NULL, sizeof *status);
}

int PMPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    const int chosen_one = marked.request != MPI_REQUEST_NULL && *request == marked.request;

    REAL(Test, MPI_Request *, int *, MPI_Status *);
    const int code = real(request, flag, status);
    if (!chosen_one || code != MPI_SUCCESS || !*flag)
        return code;
    marked.request = MPI_REQUEST_NULL;
    undefine(marked.result, marked.bytes);
    return fail(status != MPI_STATUS_IGNORE ? status : NULL, sizeof *status);
}
