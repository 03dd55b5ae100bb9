/* mpiio_ext_delegates_recover.c - mpiox_cache_kept.h, with an answer that is a text. */
#include "mpiio_ext.h"

#include "mpiox_cache_kept.h"
#include "mpiox_text.h"

typedef struct failures {
    mpiox_text text;
    int count;
} failures;

static void put_failure(void *context, const mpiox_cache_left *left)
{
    failures *found = context;

    mpiox_text_put(&found->text, "%s{\"path\": ", found->count++ > 0 ? ", " : "");
    mpiox_text_put_json(&found->text, left->file);
    mpiox_text_put(&found->text,
                   ", \"errno\": %d, \"changed\": %s, \"whole\": %s, \"waits\": %s, \"why\": ", left->sys_errno,
                   left->changed ? "true" : "false", left->whole ? "true" : "false", left->waits ? "true" : "false");
    mpiox_text_put_json(&found->text, left->why);
    mpiox_text_put(&found->text, "}");
}

int64_t mpiio_ext_delegates_recover(const char *path, const char *folders, int force, char *text, int64_t text_bytes)
{
    const mpiox_cache_recovering how = {.all_are_gone = true, .force = force != 0, .folders = folders};
    failures found = {.text = {text, text_bytes, 0}};

    mpiox_text_put(&found.text, "[");
    const int64_t bytes = mpiox_cache_recover_kept(path, &how, put_failure, &found);

    mpiox_text_put(&found.text, "]");
    return bytes;
}
