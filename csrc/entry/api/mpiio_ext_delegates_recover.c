/* mpiio_ext_delegates_recover.c - mpiox_cache_kept.h, with an answer that is a text. */
#include "mpiio_ext.h"

#include "mpiox_cache_kept.h"
#include "mpiox_text.h"

typedef struct failures {
    mpiox_text text;
    int count;
} failures;

static void put_failure(void *context, const char *file, int sys_errno)
{
    failures *found = context;

    mpiox_text_put(&found->text, "%s{\"path\": ", found->count++ > 0 ? ", " : "");
    mpiox_text_put_json(&found->text, file);
    mpiox_text_put(&found->text, ", \"errno\": %d}", sys_errno);
}

int64_t mpiio_ext_delegates_recover(const char *path, char *text, int64_t text_bytes)
{
    failures found = {.text = {text, text_bytes, 0}};

    mpiox_text_put(&found.text, "[");
    const int64_t bytes = mpiox_cache_recover_kept(path, true, put_failure, &found);

    mpiox_text_put(&found.text, "]");
    return bytes;
}
