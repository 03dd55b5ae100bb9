/* mpiox_trace_place.c - see mpiox_trace_place.h. */
#include "mpiox_trace_place.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mpiox_print.h"
#include "mpiox_trace_system.h"

enum { TRIES = 1000 };

mpiox_trace_place mpiox_trace_here = {.rank = -1};
static mpiox_trace_place *const here = &mpiox_trace_here;

void mpiox_trace_place_folder(const char *name)
{
    here->stopped = name[0] != '/' || strlen(name) >= sizeof here->folder;
    if (!here->stopped)
        strcpy(here->folder, name);
}

void mpiox_trace_place_stop(const char *why)
{
    mpiox_print("mpiio_ext trace: %s: %s; tracing of process %d ends here, the program continues\n",
                here->path[0] != '\0' ? here->path : here->folder, why, (int)getpid());
    here->stopped = true;
}

static void name_file(char *name, const char *suffix, int attempt)
{
    char who[32] = "norank", again[16] = "";

    if (here->rank >= 0)
        snprintf(who, sizeof who, "rank%d", here->rank);
    if (attempt > 0)
        snprintf(again, sizeof again, ".%d", attempt);
    snprintf(name, MPIOX_TRACE_PATH_BYTES, "%s/%s.%s.%d%s%s", here->folder, who, here->host, (int)getpid(), again,
             suffix);
}

int mpiox_trace_place_create(const char *suffix)
{
    memset(here->host, 0, sizeof here->host);
    strcpy(here->host, "host");
    gethostname(here->host, sizeof here->host - 1);
    for (int attempt = 0; attempt < TRIES; attempt++) {
        name_file(here->path, suffix, attempt);
        int fd = mpiox_trace_create(here->path);
        if (fd < 0 && attempt == 0) {
            mpiox_trace_make_folder(here->folder);
            fd = mpiox_trace_create(here->path);
        }
        if (fd >= 0)
            return fd;
    }
    here->path[0] = '\0';
    return -1;
}

void mpiox_trace_place_rename(const char *suffix)
{
    char before[MPIOX_TRACE_PATH_BYTES];

    memcpy(before, here->path, sizeof before);
    for (int attempt = 0; attempt < TRIES; attempt++) {
        name_file(here->path, suffix, attempt);
        if (mpiox_trace_access(here->path, F_OK) != 0 && mpiox_trace_rename(before, here->path) == 0)
            return;
    }
    memcpy(here->path, before, sizeof before);
}

/* Characters that a shell does not interpret, in any locale. */
static bool is_plain(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";

    return *word != '\0' && word[strspn(word, plain)] == '\0';
}

/* Append one word of a command as a shell takes it; false: there is no room. Control characters, which no line of a
 * command can show, end it. */
static bool append_word(const char *word, char *text, int bytes, int *used)
{
    const bool plain = is_plain(word);
    char quoted[MPIOX_TRACE_PATH_BYTES];
    int n = 0;

    if (!plain)
        quoted[n++] = '\'';
    for (; *word != '\0'; word++) {
        const bool quote = *word == '\'';
        if ((unsigned char)*word < ' ' || *word == 127 || n + 8 > (int)sizeof quoted)
            return false;
        n += snprintf(quoted + n, sizeof quoted - (size_t)n, "%s%c%s", quote ? "'\"" : "", *word, quote ? "\"'" : "");
    }
    if (!plain)
        quoted[n++] = '\'';
    if (*used + n + 6 > bytes)
        return false;
    *used += snprintf(text + *used, (size_t)(bytes - *used), "%s%.*s", *used > 0 ? " " : "", n, quoted);
    return true;
}

void mpiox_trace_place_command(char *text, int bytes)
{
    char words[MPIOX_TRACE_PATH_BYTES];
    const int length = mpiox_trace_read_text("/proc/self/cmdline", words, sizeof words);
    int used = 0;

    text[0] = '\0';
    for (int i = 0; i < length; i += (int)strlen(words + i) + 1)
        if (i + (int)strlen(words + i) >= (int)sizeof words - 1 || !append_word(words + i, text, bytes, &used)) {
            snprintf(text + used, (size_t)(bytes - used), "%s", used > 0 ? " \xe2\x80\xa6" : "\xe2\x80\xa6");
            return; /* the rest is not shown */
        }
}
