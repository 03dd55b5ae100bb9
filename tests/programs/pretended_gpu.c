/*
 * pretended_gpu.c - a driver of a GPU that is not there: the functions of the CUDA driver API that this library uses,
 * and those by which a test gets device memory. Compiled with -DPRETENDED_HIP, the former are those of HIP.
 *
 * Device memory is a memory file that is mapped twice: without access at the address that the program sees, so that
 * a processor that touches it is killed and the file system returns EFAULT; and once more for the pretended copies.
 * Copies that are begun are carried out when the program waits for their stream, in order, as late as a GPU may: who
 * reads the bytes before, or changes them, sees or writes wrong ones. Copies need the context of the memory to be
 * current, with HIP its device. HIP knows no contexts: memory of pools is on device 0, all other on device 1.
 *
 *   PRETENDED_GPU_MAPPED=1            a processor can access device memory, as through a large BAR
 *   PRETENDED_GPU_FAIL=NAME:N:RESULT  the N-th call of this function of the driver, from 1 on, and all after it fail
 *                                     with RESULT; with 700 and 719 then all functions do, as for a lost context.
 *                                     NAME is CUDA's
 *   PRETENDED_GPU_LATE=US             cuGetErrorName is found so many microseconds after a program has asked for it
 *
 * pretended_gpu_count(what) returns 0: bytes of host memory that are registered, 1: the most there were, 2: copies that
 * were begun, 3: bytes copied, 4: the most bytes of host memory at once that were named by copies under way.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef PRETENDED_HIP
#define cuPointerGetAttributes hipDrvPointerGetAttributes
#define cuStreamCreate hipStreamCreateWithFlags
#define cuStreamSynchronize hipStreamSynchronize
#define cuStreamDestroy_v2 hipStreamDestroy
#define cuMemcpyDtoHAsync_v2 hipMemcpyDtoHAsync
#define cuMemcpyHtoDAsync_v2 hipMemcpyHtoDAsync
#define cuMemHostRegister_v2 hipHostRegister
#define cuMemHostUnregister hipHostUnregister
#define NAMED(error) "hipError" error
#else
#define NAMED(error) "CUDA_ERROR_" error
#endif

enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    INVALID_CONTEXT = 201,
    ILLEGAL_ADDRESS = 700,
    ALREADY_REGISTERED = 712,
    LAUNCH_FAILED = 719,
    MOST = 65536,
    DEPTH = 16
};
enum { PLAIN, MANAGED, POOL, HOST };
#ifdef PRETENDED_HIP
enum { CONTEXT = -1, MEMORY_TYPE = -2, HOST_POINTER = 4, IS_MANAGED = 8, ORDINAL = 9 }; /* it has not the former */
#else
enum { CONTEXT = 1, MEMORY_TYPE = 2, HOST_POINTER = -1, IS_MANAGED = 8, ORDINAL = 9 };
#endif

typedef struct allocation {
    uintptr_t at;
    size_t bytes;
    char *shadow;
    int kind;
} allocation;

typedef struct copy_2d {
    size_t source_x, source_y;
    int source_type;
    const char *source_host;
    unsigned long long source_device;
    void *source_array;
    size_t source_pitch;
    size_t target_x, target_y;
    int target_type;
    char *target_host;
    unsigned long long target_device;
    void *target_array;
    size_t target_pitch;
    size_t width, height;
} copy_2d;

typedef struct pending { /* a copy that was begun */
    copy_2d copy;
    struct pending *next;
} pending;

typedef struct stream {
    pending *first, **last;
} stream;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static allocation allocations[MOST];
static int used;
static int64_t counts[5], under_way;
static struct {
    void *at;
    size_t bytes;
} registered[MOST];
static int registrations;
static pid_t owner;
static int lost; /* the result of all functions, once a context is lost */
static char one_context;
#ifdef PRETENDED_HIP
static __thread int current; /* device */
#else
static char primary_context;
static __thread void *contexts[DEPTH];
static __thread int depth;
#endif

__attribute__((constructor)) static void begin(void)
{
    owner = getpid();
}

/* The result that the test wants of this call; 0: its own. */
static int wanted(const char *name)
{
    static int calls;
    const char *text = getenv("PRETENDED_GPU_FAIL");
    const size_t length = strlen(name);
    int number, result;
    if (getpid() != owner)
        return NOT_INITIALIZED;
    if (lost)
        return lost;
    if (text == NULL || strncmp(text, name, length) != 0 || sscanf(text + length, ":%d:%d", &number, &result) != 2)
        return SUCCESS;
    if (__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) < number)
        return SUCCESS;
    if (result == ILLEGAL_ADDRESS || result == LAUNCH_FAILED)
        lost = result;
    return result;
}

#define BEGIN(name)                                                                                                    \
    const int failure = wanted(#name);                                                                                 \
    if (failure != SUCCESS)                                                                                            \
    return failure

/* Under the lock. */
static allocation *find(uintptr_t at, size_t bytes)
{
    for (int i = 0; i < used; i++)
        if (at >= allocations[i].at && at + bytes <= allocations[i].at + allocations[i].bytes)
            return &allocations[i];
    return NULL;
}

static int ordinal_of(const allocation *a)
{
    return a->kind != POOL;
}

static bool is_current(const allocation *a)
{
#ifdef PRETENDED_HIP
    return current == ordinal_of(a);
#else
    const void *now = depth > 0 ? contexts[depth - 1] : NULL;
    return now == (a->kind == POOL ? &primary_context : &one_context);
#endif
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static int allocate(uintptr_t *out, size_t bytes, int kind)
{
    const int fd = memfd_create("device", 0);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
        return OUT_OF_MEMORY;
    const bool mapped = kind == MANAGED || kind == HOST || getenv("PRETENDED_GPU_MAPPED") != NULL;
    const int access = mapped ? PROT_READ | PROT_WRITE : PROT_NONE;
    char *seen = mmap(NULL, bytes, access, MAP_SHARED, fd, 0);
    char *shadow = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (seen == MAP_FAILED || shadow == MAP_FAILED)
        return OUT_OF_MEMORY;
    pthread_mutex_lock(&lock);
    const bool room = used < MOST;
    if (room)
        allocations[used++] = (allocation){(uintptr_t)seen, bytes, shadow, kind};
    pthread_mutex_unlock(&lock);
    *out = (uintptr_t)seen;
    return room ? SUCCESS : OUT_OF_MEMORY;
}

int cuMemAlloc_v2(uintptr_t *out, size_t bytes)
{
    BEGIN(cuMemAlloc_v2);
    return allocate(out, bytes, PLAIN);
}

int cuMemAllocManaged(uintptr_t *out, size_t bytes, unsigned flags)
{
    (void)flags;
    return allocate(out, bytes, MANAGED);
}

int cuMemAllocAsync(uintptr_t *out, size_t bytes, void *queue)
{
    (void)queue;
    return allocate(out, bytes, POOL);
}

int cuMemAllocHost_v2(uintptr_t *out, size_t bytes)
{
    return allocate(out, bytes, HOST);
}

int cuMemFree_v2(uintptr_t at)
{
    int result = INVALID_VALUE;
    pthread_mutex_lock(&lock);
    allocation *found = find(at, 1);
    if (found != NULL && found->at == at) {
        munmap((void *)found->at, found->bytes);
        munmap(found->shadow, found->bytes);
        *found = allocations[--used];
        result = SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

int cuPointerGetAttributes(unsigned n, int *attributes, void **data, uintptr_t pointer)
{
    BEGIN(cuPointerGetAttributes);
    pthread_mutex_lock(&lock);
    const allocation *found = find(pointer, 1);
    for (unsigned i = 0; i < n; i++)
        switch (attributes[i]) {
        case CONTEXT:
            *(void **)data[i] = found == NULL || found->kind == POOL ? NULL : &one_context;
            break;
        case MEMORY_TYPE:
            *(unsigned *)data[i] = found == NULL ? 0 : found->kind == HOST ? 1 : 2;
            break;
        case HOST_POINTER:
            *(void **)data[i] = found == NULL || found->kind == PLAIN || found->kind == POOL ? NULL : (void *)pointer;
            break;
        case IS_MANAGED:
            *(bool *)data[i] = found != NULL && found->kind == MANAGED;
            break;
        case ORDINAL:
            *(int *)data[i] = found == NULL ? -2 : ordinal_of(found);
            break;
        default:
            pthread_mutex_unlock(&lock);
            return INVALID_VALUE;
        }
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

int cuMemHostRegister_v2(void *at, size_t bytes, unsigned flags)
{
    (void)flags;
    BEGIN(cuMemHostRegister_v2);
    pthread_mutex_lock(&lock);
    registered[registrations].at = at;
    registered[registrations++].bytes = bytes;
    counts[0] += (int64_t)bytes;
    if (counts[0] > counts[1])
        counts[1] = counts[0];
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

int cuMemHostUnregister(void *at)
{
    int result = INVALID_VALUE;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < registrations && result != SUCCESS; i++)
        if (registered[i].at == at) {
            counts[0] -= (int64_t)registered[i].bytes;
            registered[i] = registered[--registrations];
            result = SUCCESS;
        }
    pthread_mutex_unlock(&lock);
    return result;
}

int64_t pretended_gpu_count(int what)
{
    pthread_mutex_lock(&lock);
    const int64_t count = counts[what];
    pthread_mutex_unlock(&lock);
    return count;
}

/* ---- contexts ---------------------------------------------------------------------------------------------------- */

#ifdef PRETENDED_HIP
int hipGetDevice(int *device)
{
    BEGIN(cuCtxPushCurrent_v2);
    *device = current;
    return SUCCESS;
}

int hipSetDevice(int device)
{
    current = device;
    return SUCCESS;
}
#else
int cuCtxPushCurrent_v2(void *context)
{
    BEGIN(cuCtxPushCurrent_v2);
    if (depth == DEPTH)
        return INVALID_VALUE;
    contexts[depth++] = context;
    return SUCCESS;
}

int cuCtxPopCurrent_v2(void **context)
{
    if (depth == 0)
        return INVALID_CONTEXT;
    *context = contexts[--depth];
    return SUCCESS;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    (void)device;
    *context = &primary_context;
    return SUCCESS;
}
#endif

static const char *name_of_error(int result)
{
    return result == INVALID_VALUE        ? NAMED("INVALID_VALUE")
           : result == OUT_OF_MEMORY      ? NAMED("OUT_OF_MEMORY")
           : result == NOT_INITIALIZED    ? NAMED("NOT_INITIALIZED")
           : result == INVALID_CONTEXT    ? NAMED("INVALID_CONTEXT")
           : result == ILLEGAL_ADDRESS    ? NAMED("ILLEGAL_ADDRESS")
           : result == ALREADY_REGISTERED ? NAMED("HOST_MEMORY_ALREADY_REGISTERED")
           : result == LAUNCH_FAILED      ? NAMED("LAUNCH_FAILED")
                                          : NULL;
}

#ifdef PRETENDED_HIP
const char *hipGetErrorName(int result)
{
    return name_of_error(result);
}
#else
static int set_name_of_error(int result, const char **name)
{
    *name = name_of_error(result);
    return *name == NULL ? INVALID_VALUE : SUCCESS;
}

/* The dynamic linker calls this each time that it is asked for the function. */
static int (*found_late(void))(int, const char **)
{
    const char *us = getenv("PRETENDED_GPU_LATE");
    if (us != NULL)
        usleep((unsigned)atoi(us));
    return set_name_of_error;
}

int cuGetErrorName(int result, const char **name) __attribute__((ifunc("found_late")));
#endif

/* ---- copies ------------------------------------------------------------------------------------------------------ */

int cuStreamCreate(void **out, unsigned flags)
{
    (void)flags;
    BEGIN(cuStreamCreate);
    stream *made = calloc(1, sizeof *made);
    if (made == NULL)
        return OUT_OF_MEMORY;
    made->last = &made->first;
    *out = made;
    return SUCCESS;
}

/* Under the lock: a copy between memory that is there. */
static int carry_out(const copy_2d *c)
{
    for (size_t i = 0; i < c->height; i++) {
        const bool to_device = c->target_type == 2;
        const uintptr_t at = (uintptr_t)(to_device ? c->target_device + i * c->target_pitch
                                                   : c->source_device + i * c->source_pitch);
        const allocation *found = find(at, c->width);
        if (found == NULL)
            return ILLEGAL_ADDRESS;
        char *there = found->shadow + (at - found->at);
        if (to_device)
            memcpy(there, c->source_host + i * c->source_pitch, c->width);
        else
            memcpy(c->target_host + i * c->target_pitch, there, c->width);
        counts[3] += (int64_t)c->width;
    }
    return SUCCESS;
}

int cuStreamSynchronize(void *queue)
{
    stream *s = queue;
    int result = wanted("cuStreamSynchronize");
    pthread_mutex_lock(&lock);
    for (pending *p = s->first, *next; p != NULL; p = next) {
        next = p->next;
        if (result == SUCCESS)
            result = lost ? lost : carry_out(&p->copy);
        under_way -= (int64_t)(p->copy.width * p->copy.height);
        free(p);
    }
    s->first = NULL;
    s->last = &s->first;
    if (result == ILLEGAL_ADDRESS)
        lost = result;
    pthread_mutex_unlock(&lock);
    return result;
}

int cuStreamDestroy_v2(void *queue)
{
    (void)cuStreamSynchronize(queue);
    free(queue);
    return SUCCESS;
}

static int begin_copy(const copy_2d *c, void *queue)
{
    stream *s = queue;
    const bool to_device = c->target_type == 2;
    const uintptr_t at = (uintptr_t)(to_device ? c->target_device : c->source_device);
    const size_t pitch = to_device ? c->target_pitch : c->source_pitch;
    if (c->height > 1 && pitch < c->width)
        return INVALID_VALUE;
    pthread_mutex_lock(&lock);
    const allocation *found = find(at, c->width);
    int result = found == NULL ? INVALID_VALUE : !is_current(found) ? INVALID_CONTEXT : SUCCESS;
    pending *p = result == SUCCESS ? malloc(sizeof *p) : NULL;
    if (p != NULL) {
        *p = (pending){*c, NULL};
        *s->last = p;
        s->last = &p->next;
        counts[2]++;
        under_way += (int64_t)(c->width * c->height);
        if (under_way > counts[4])
            counts[4] = under_way;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

#ifdef PRETENDED_HIP
int hipMemcpy2DAsync(void *target, size_t target_pitch, const void *source, size_t source_pitch, size_t width,
                     size_t height, int kind, void *queue)
{
    const copy_2d c = {.source_type = kind == 1 ? 1 : 2,
                       .source_host = source,
                       .source_device = (uintptr_t)source,
                       .source_pitch = source_pitch,
                       .target_type = kind == 1 ? 2 : 1,
                       .target_host = target,
                       .target_device = (uintptr_t)target,
                       .target_pitch = target_pitch,
                       .width = width,
                       .height = height};
    BEGIN(cuMemcpy2DAsync_v2);
    return kind == 1 || kind == 2 ? begin_copy(&c, queue) : INVALID_VALUE;
}
#else
int cuMemcpy2DAsync_v2(const copy_2d *c, void *queue)
{
    BEGIN(cuMemcpy2DAsync_v2);
    return begin_copy(c, queue);
}
#endif

int cuMemcpyDtoHAsync_v2(void *host, unsigned long long device, size_t bytes, void *queue)
{
    BEGIN(cuMemcpyDtoHAsync_v2);
    const copy_2d c = {
        .source_type = 2, .source_device = device, .target_type = 1, .target_host = host, .width = bytes, .height = 1};
    return begin_copy(&c, queue);
}

int cuMemcpyHtoDAsync_v2(unsigned long long device, const void *host, size_t bytes, void *queue)
{
    BEGIN(cuMemcpyHtoDAsync_v2);
    const copy_2d c = {
        .source_type = 1, .source_host = host, .target_type = 2, .target_device = device, .width = bytes, .height = 1};
    return begin_copy(&c, queue);
}

/* Those of the test: at once, whichever context is current. */
int cuMemcpyHtoD_v2(unsigned long long device, const void *host, size_t bytes)
{
    const copy_2d c = {
        .source_type = 1, .source_host = host, .target_type = 2, .target_device = device, .width = bytes, .height = 1};
    pthread_mutex_lock(&lock);
    const int result = carry_out(&c);
    pthread_mutex_unlock(&lock);
    return result;
}

int cuMemcpyDtoH_v2(void *host, unsigned long long device, size_t bytes)
{
    const copy_2d c = {
        .source_type = 2, .source_device = device, .target_type = 1, .target_host = host, .width = bytes, .height = 1};
    pthread_mutex_lock(&lock);
    const int result = carry_out(&c);
    pthread_mutex_unlock(&lock);
    return result;
}
