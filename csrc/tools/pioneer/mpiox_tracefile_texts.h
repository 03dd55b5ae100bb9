/* mpiox_tracefile_texts.h - the texts of a trace file by number, and the names that rows use by index. */
#ifndef MPIOX_TRACEFILE_TEXTS_H
#define MPIOX_TRACEFILE_TEXTS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct mpiox_tracefile_texts {
    char **text;          /* by number; NULL: not defined */
    int32_t *index;       /* by number: among `used`, -1: not used */
    int64_t n_texts;      /* entries of `text` and `index` */
    const char **used;    /* by index */
    int64_t n_used, room; /* entries of `used`; room for them */
} mpiox_tracefile_texts;

typedef struct mpiox_tracefile_buffer {
    char *bytes;        /* owned */
    int64_t used, room; /* bytes in use; room */
    bool failed;        /* no memory */
} mpiox_tracefile_buffer;

/* False: no memory. A number that is out of all reason is left out, as if not defined. The text becomes valid UTF-8:
 * other bytes are written as \xNN. */
bool mpiox_tracefile_texts_define(mpiox_tracefile_texts *texts, int64_t number, const uint8_t *bytes, int64_t length);
const char *mpiox_tracefile_texts_get(const mpiox_tracefile_texts *texts, int64_t number);
/* Index of a number's text; -1: it is not defined, or there is no memory. */
int64_t mpiox_tracefile_texts_use(mpiox_tracefile_texts *texts, int64_t number);
void mpiox_tracefile_texts_free(mpiox_tracefile_texts *texts);

void mpiox_tracefile_buffer_add(mpiox_tracefile_buffer *buffer, const char *bytes, int64_t length);
void mpiox_tracefile_buffer_number(mpiox_tracefile_buffer *buffer, int64_t number);
void mpiox_tracefile_buffer_string(mpiox_tracefile_buffer *buffer, const char *text); /* of JSON */

#endif
