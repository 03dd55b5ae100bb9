/*
 * failed_call.c - a call to spawned delegates that cannot begin closes no descriptor that is not its own.
 *
 * malloc(), calloc() and getrandom() here take the place of the C library's while the call is opened: memory is full of
 * the number of an open descriptor, and one of the three fails.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "check.h"
#include "mpiox_service_call.h"

enum { DELEGATES = 16 };

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);

static enum { NOTHING, MALLOC, CALLOC, RANDOM } failing = NOTHING;
static int victim = -1;

void *malloc(size_t bytes)
{
    int *out = failing != MALLOC ? __libc_malloc(bytes) : NULL;
    for (size_t i = 0; failing != NOTHING && out != NULL && i < bytes / sizeof *out; i++)
        out[i] = victim;
    return out;
}

void *calloc(size_t count, size_t bytes)
{
    return failing != CALLOC ? __libc_calloc(count, bytes) : NULL;
}

ssize_t getrandom(void *out, size_t bytes, unsigned flags)
{
    (void)out, (void)bytes, (void)flags;
    errno = ENOSYS;
    return -1;
}

static void check_failure(int what, int code, int sys_errno)
{
    const mpiox_rendezvous_place place = {.loopback = true};
    mpiox_service_call call = {.count = 0};
    mpiox_error error = {.code = MPIOX_OK};
    char text[MPIOX_SERVICE_CALL_TEXT];
    int result;

    errno = EAGAIN; /* of something before */
    failing = what;
    result = mpiox_service_call_open(DELEGATES, &place, &call, text, &error);
    failing = NOTHING;
    CHECK_EQUAL(result, code);
    CHECK_EQUAL(error.sys_errno, sys_errno);
    mpiox_service_call_close(&call, false);
    CHECK(fcntl(victim, F_GETFD) >= 0);
}

int main(void)
{
    victim = open("/dev/null", O_RDONLY);
    CHECK(victim >= 0);
    check_failure(MALLOC, MPIOX_E_NOMEM, ENOMEM);
    check_failure(CALLOC, MPIOX_E_NOMEM, ENOMEM);
    check_failure(RANDOM, MPIOX_E_IO, ENOSYS);
    return check_exit();
}
