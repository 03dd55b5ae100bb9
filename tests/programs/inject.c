/*
 * inject.c - preloaded under a program: makes chosen calls of the library under test fail.
 *
 *   PRETEND_FS=MAGIC          every descriptor lies on the file system with this statfs(2) magic, in hexadecimal
 *   inject_malloc(low, high)  from now on no memory for requests of low to high - 1 bytes; (0, 0) ends it
 *   inject_operation(name, n) the n-th (from 0) nonblocking operation PMPI_NAME from now on fails when it completes: it
 *                             is carried out, but the caller is told MPI_ERR_OTHER. inject_done(): one has; n < 0: end
 *   inject_begun()            how many nonblocking operations this process has begun
 *   inject_blocking()         how many blocking collectives
 *   inject_gathered()         bytes that gathers of all ranks have brought to this one
 *   inject_sent()             how many bytes it has sent by MPI_Isend
 *   inject_delivered()        how many by MPI_Issend
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>

extern void *__libc_malloc(size_t bytes);

static volatile size_t malloc_low, malloc_high;
static char operation[32];
static int countdown = -1, done, operations;
static long blocking, delivered, gathered, sent;
static MPI_Request marked = MPI_REQUEST_NULL;

void inject_malloc(long low, long high);
void inject_operation(const char *name, int n);
int inject_done(void);
int inject_begun(void);
long inject_blocking(void);
long inject_delivered(void);
long inject_gathered(void);
long inject_sent(void);

void inject_malloc(long low, long high)
{
    malloc_low = (size_t)low;
    malloc_high = (size_t)high;
}

void inject_operation(const char *name, int n)
{
    strncpy(operation, name, sizeof operation - 1);
    countdown = n;
    done = n < 0 && done;
    marked = MPI_REQUEST_NULL;
}

int inject_done(void)
{
    return done;
}

int inject_begun(void)
{
    return operations;
}

long inject_blocking(void)
{
    return blocking;
}

long inject_delivered(void)
{
    return delivered;
}

long inject_gathered(void)
{
    return gathered;
}

long inject_sent(void)
{
    return sent;
}

void *malloc(size_t bytes)
{
    return bytes >= malloc_low && bytes < malloc_high ? NULL : __libc_malloc(bytes);
}

int fstatfs(int fd, struct statfs *status)
{
    int (*real)(int, struct statfs *);
    const char *magic = getenv("PRETEND_FS");

    *(void **)&real = dlsym(RTLD_NEXT, "fstatfs");
    const int result = real(fd, status);

    if (result == 0 && magic != NULL && *magic != '\0')
        status->f_type = (__typeof__(status->f_type))strtoul(magic, NULL, 16);
    return result;
}

static int begun(const char *name, int result, MPI_Request *request)
{
    operations++;
    if (strcmp(name, operation) == 0 && countdown >= 0 && countdown-- == 0)
        marked = *request;
    return result;
}

#define REAL(name, ...)                                                                                                \
    int (*real)(__VA_ARGS__);                                                                                          \
    *(void **)&real = dlsym(RTLD_NEXT, "PMPI_" #name)

static long bytes_of(int n, MPI_Datatype type)
{
    int size;

    PMPI_Type_size(type, &size);
    return (long)n * size;
}

static void gather(int n, MPI_Datatype type, MPI_Comm comm)
{
    int ranks;

    PMPI_Comm_size(comm, &ranks);
    gathered += bytes_of(n, type) * ranks;
}

/* Communicators, for example, are made by blocking collectives. */
#define BLOCKING(name, parameters, ...)                                                                                \
    int PMPI_##name parameters                                                                                         \
    {                                                                                                                  \
        int(*real) parameters;                                                                                         \
        *(void **)&real = dlsym(RTLD_NEXT, "PMPI_" #name);                                                             \
        blocking++;                                                                                                    \
        return real(__VA_ARGS__);                                                                                      \
    }

BLOCKING(Allreduce, (const void *from, void *to, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm), from, to, n, type,
         op, comm)
BLOCKING(Bcast, (void *data, int n, MPI_Datatype type, int root, MPI_Comm comm), data, n, type, root, comm)
BLOCKING(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm *out), comm, color, key, out)
BLOCKING(Comm_split_type, (MPI_Comm comm, int kind, int key, MPI_Info info, MPI_Comm *out), comm, kind, key, info, out)

int PMPI_Allgather(const void *from, int n, MPI_Datatype type, void *to, int m, MPI_Datatype other, MPI_Comm comm)
{
    REAL(Allgather, const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm);
    blocking++;
    gather(m, other, comm);
    return real(from, n, type, to, m, other, comm);
}

int PMPI_Iallgather(const void *from, int n, MPI_Datatype type, void *to, int m, MPI_Datatype other, MPI_Comm comm,
                    MPI_Request *request)
{
    REAL(Iallgather, const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm, MPI_Request *);
    gather(m, other, comm);
    return begun("Iallgather", real(from, n, type, to, m, other, comm, request), request);
}

int PMPI_Iallgatherv(const void *from, int n, MPI_Datatype type, void *to, const int counts[], const int displs[],
                     MPI_Datatype other, MPI_Comm comm, MPI_Request *request)
{
    REAL(Iallgatherv, const void *, int, MPI_Datatype, void *, const int[], const int[], MPI_Datatype, MPI_Comm,
         MPI_Request *);
    for (int i = 0, size = PMPI_Comm_size(comm, &size) == MPI_SUCCESS ? size : 0; i < size; i++)
        gather(counts[i], other, MPI_COMM_SELF);
    return begun("Iallgatherv", real(from, n, type, to, counts, displs, other, comm, request), request);
}

int PMPI_Igather(const void *from, int n, MPI_Datatype type, void *to, int m, MPI_Datatype other, int root,
                 MPI_Comm comm, MPI_Request *request)
{
    REAL(Igather, const void *, int, MPI_Datatype, void *, int, MPI_Datatype, int, MPI_Comm, MPI_Request *);
    return begun("Igather", real(from, n, type, to, m, other, root, comm, request), request);
}

int PMPI_Igatherv(const void *from, int n, MPI_Datatype type, void *to, const int counts[], const int displs[],
                  MPI_Datatype other, int root, MPI_Comm comm, MPI_Request *request)
{
    REAL(Igatherv, const void *, int, MPI_Datatype, void *, const int[], const int[], MPI_Datatype, int, MPI_Comm,
         MPI_Request *);
    return begun("Igatherv", real(from, n, type, to, counts, displs, other, root, comm, request), request);
}

int PMPI_Ibcast(void *buffer, int n, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request)
{
    REAL(Ibcast, void *, int, MPI_Datatype, int, MPI_Comm, MPI_Request *);
    return begun("Ibcast", real(buffer, n, type, root, comm, request), request);
}

int PMPI_Iallreduce(const void *from, void *to, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                    MPI_Request *request)
{
    REAL(Iallreduce, const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request *);
    return begun("Iallreduce", real(from, to, n, type, op, comm, request), request);
}

int PMPI_Isend(const void *buffer, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    REAL(Isend, const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
    sent += bytes_of(n, type);
    return begun("Isend", real(buffer, n, type, to, tag, comm, request), request);
}

int PMPI_Issend(const void *buffer, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    REAL(Issend, const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
    delivered += bytes_of(n, type);
    return begun("Issend", real(buffer, n, type, to, tag, comm, request), request);
}

int PMPI_Irecv(void *buffer, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    REAL(Irecv, void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
    return begun("Irecv", real(buffer, n, type, from, tag, comm, request), request);
}

int PMPI_Imrecv(void *buffer, int n, MPI_Datatype type, MPI_Message *message, MPI_Request *request)
{
    REAL(Imrecv, void *, int, MPI_Datatype, MPI_Message *, MPI_Request *);
    return begun("Imrecv", real(buffer, n, type, message, request), request);
}

int PMPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    const int chosen = marked != MPI_REQUEST_NULL && *request == marked;

    REAL(Test, MPI_Request *, int *, MPI_Status *);
    const int result = real(request, flag, status);

    if (!chosen || result != MPI_SUCCESS || !*flag)
        return result;
    marked = MPI_REQUEST_NULL;
    done = 1;
    return MPI_ERR_OTHER;
}
