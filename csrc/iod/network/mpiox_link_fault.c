/* mpiox_link_fault.c - see mpiox_link_fault.h. */
#include "mpiox_link_fault.h"

#include "mpiox_print.h"
#include "mpiox_testing.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static int parse_pair(const char *key, const char *value, mpiox_link_fault *out)
{
    char *end;
    errno = 0;
    const intmax_t number = strtoimax(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0)
        return MPIOX_E_ARG;
    if (strcmp(key, "delay_ms") == 0 && number <= 60000)
        out->delay_ms = number;
    else if (strcmp(key, "drop_after") == 0)
        out->left = number;
    else if (strcmp(key, "short") == 0 && number > 0)
        out->short_bytes = number;
    else
        return MPIOX_E_ARG;
    return MPIOX_OK;
}

static int parse(const char *text, mpiox_link_fault *out)
{
    char *copy = strdup(text), *rest = copy;
    int code = copy != NULL ? MPIOX_OK : MPIOX_E_NOMEM;
    for (char *pair = strsep(&rest, ":"); pair != NULL && code == MPIOX_OK; pair = strsep(&rest, ":")) {
        char *value = strchr(pair, '=');
        if (value != NULL)
            *value++ = '\0';
        code = value != NULL ? parse_pair(pair, value, out) : MPIOX_E_ARG;
    }
    free(copy);
    return code;
}

/* A printed line names the cause of broken connections. */
static void announce(const char *text, int code)
{
    static atomic_flag announced = ATOMIC_FLAG_INIT;
    if (atomic_flag_test_and_set(&announced))
        return;
    if (code == MPIOX_OK)
        mpiox_print("mpiio_ext: fault injection is on, connections suffer on purpose (MPIOX_NETWORK_FAULT=\"%s\")\n",
                    text);
    else
        mpiox_print("mpiio_ext: MPIOX_NETWORK_FAULT=\"%s\" cannot be parsed (keys: delay_ms, drop_after, short; "
                    "KEY=NUMBER separated by ':')\n",
                    text);
}

int mpiox_link_fault_read(mpiox_link_fault *out, mpiox_error *error)
{
    const char *text = mpiox_testing_variable("MPIOX_NETWORK_FAULT");
    *out = (mpiox_link_fault){.left = INT64_MAX, .short_bytes = INT64_MAX};
    if (text == NULL)
        return MPIOX_OK;
    const int code = parse(text, out);
    announce(text, code);
    return code == MPIOX_OK ? MPIOX_OK : mpiox_error_set(error, code, EINVAL, -1, -1, "MPIOX_NETWORK_FAULT");
}
