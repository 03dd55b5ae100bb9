/*
 * mpiox_darshan_log.c - one Darshan log as rows: header, job, names, mount points, modules.
 *
 * Problem. A log may be empty, cut off, damaged, of another kind, or newer than the library. The library says so by a
 * result, by a text on standard error, by an assertion or by a crash, and after an error its handle is of no use.
 *
 * Algorithm. What can be checked without the library comes first: a regular file, its size, the magic number, the text
 * of the version. Then each part is read; one that fails is blamed with a reason, the log is opened anew and read
 * without it. (Crashes: mpiox_darshan_isolated.c.) A module of which any byte cannot be read is left out as a whole
 * (mpiox_darshan_regions.c): sums over a part of the ranks would be wrong numbers, and absent is not wrong. Without
 * POSIX, though the log has it, what is added up over POSIX and STDIO is absent, too; without STDIO it is that of
 * POSIX.
 *
 * Guarantees. Every log gets exactly one row among the logs. The ID of a log depends on its job and on its file's name
 * alone.
 *
 * Source: darshan-util, darshan-log-format.h; IOMiner, Section II-B.
 */
#include "mpiox_darshan_log.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpiox_darshan_files.h"
#include "mpiox_darshan_regions.h"
#include "mpiox_darshan_summary.h"
#include "mpiox_error.h"

#define MAGIC 6567223ULL

enum { POSIX_1_BYTES = 680 };
enum {
    RECORD_BYTES = 1 << 15,
    TEXT_BYTES = 8192,
    REASON_BYTES = 2048,
    MODULES_BYTES = 1024,
    MAX_MODULES = MPIOX_DARSHAN_MAX_MODULES
};

/* Names of the modules by index; an index beyond them gets a number. */
static const char *const module_names[] = {
    "NULL",  "POSIX",     "MPI-IO",    "H5F",   "H5D",  "PNETCDF_FILE", "PNETCDF_VAR", "BG/Q", "LUSTRE",
    "STDIO", "DXT_POSIX", "DXT_MPIIO", "MDHIM", "APXC", "APMPI",        "HEATMAP",     "DFS",  "DAOS",
};
enum { MODULE_NAMES = sizeof(module_names) / sizeof(module_names[0]) };
enum {
    MODULE_POSIX = 1,
    MODULE_MPIIO,
    MODULE_H5F,
    MODULE_H5D,
    MODULE_NC_FILE,
    MODULE_NC_VAR,
    MODULE_LUSTRE = 8,
    MODULE_STDIO
};

typedef struct log_reader {
    const mpiox_darshan_library *library;
    const char *path;
    mpiox_darshan_blame blame;
    int messages;
    mpiox_darshan_progress *progress;
    mpiox_darshan_rows *rows;
    void *log;
    int swap;
    char version[16];
    int module_version[MAX_MODULES]; /* 0: not in the log */
    int module_partial[MAX_MODULES];
    mpiox_darshan_job job;
    double run_time;
    int64_t left_out; /* records of POSIX, version 1, that the library does not deliver */
    char exe[TEXT_BYTES];
    mpiox_darshan_name *names;
    int name_count;
    mpiox_darshan_map name_map;
    mpiox_darshan_mount *mounts;
    int mount_count;
    mpiox_darshan_files files;
    mpiox_darshan_summary summary;
    mpiox_darshan_regions regions;
    int64_t record[RECORD_BYTES / sizeof(int64_t)];
} log_reader;

const char *mpiox_darshan_stage_name(int stage)
{
    static const char *const names[] = {"header", "file names", "mount points", "POSIX", "STDIO", "MPI-IO", "LUSTRE"};

    return stage >= 0 && stage < MPIOX_DARSHAN_STAGES ? names[stage] : "log";
}

/* ---- what the library has written to standard error ---- */

/* Take the first of the library's messages since the last call, without its "Error: "; empty when there is none. */
static void take_message(int messages, char *text, size_t text_bytes)
{
    char *from = text;

    text[0] = '\0';
    if (messages < 0)
        return;
    const off_t end = lseek(messages, 0, SEEK_CUR);
    const ssize_t got = end > 0 ? pread(messages, text, text_bytes - 1, 0) : 0;
    text[got > 0 ? got : 0] = '\0';
    if (end > 0 && (ftruncate(messages, 0) != 0 || lseek(messages, 0, SEEK_SET) != 0))
        return;
    from += strspn(from, "\n ");
    if (strncmp(from, "Error: ", 7) == 0)
        from += 7;
    size_t length = strcspn(from, "\n");
    while (length > 0 && (from[length - 1] == '.' || from[length - 1] == ' '))
        length--;
    for (size_t k = 0; k < length; k++) /* it may quote the log */
        from[k] = from[k] >= ' ' && from[k] <= '~' ? from[k] : '?';
    memmove(text, from, length);
    text[length] = '\0';
}

/* Blame a part of the log, once, with `why` and what the library said; returns -1. */
static int blame(log_reader *reader, int stage, const char *why)
{
    char message[MPIOX_DARSHAN_BLAME];
    char *text = reader->blame.why[stage];

    take_message(reader->messages, message, sizeof(message));
    if (text[0] != '\0')
        return -1;
    const int used = snprintf(text, MPIOX_DARSHAN_BLAME, "%s", why);
    if (message[0] != '\0' && used < MPIOX_DARSHAN_BLAME)
        snprintf(text + used, (size_t)(MPIOX_DARSHAN_BLAME - used), ": %s", message);
    return -1;
}

static int begin(log_reader *reader, int stage)
{
    reader->progress->stage = stage;
    reader->progress->beat++;
    return reader->blame.why[stage][0] == '\0';
}

/* ---- the parts of a log ---- */

static int check_version(log_reader *reader, const unsigned char *head)
{
    char *why = reader->blame.why[MPIOX_DARSHAN_STAGE_OPEN];
    size_t length = 0;

    while (length < 8 && ((head[length] >= '0' && head[length] <= '9') || head[length] == '.'))
        length++;
    if (length == 0 || length == 8 || head[length] != '\0') {
        snprintf(why, MPIOX_DARSHAN_BLAME, "is damaged: its header names no version of the log format");
        return -1;
    }
    memcpy(reader->version, head, length);
    reader->version[length] = '\0';
    return 0;
}

/* What can be seen without the library. */
static int check_file(log_reader *reader)
{
    char *why = reader->blame.why[MPIOX_DARSHAN_STAGE_OPEN];
    unsigned char head[16] = {0};
    struct stat info;
    uint64_t magic;
    const int fd = open(reader->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &info) != 0) {
        snprintf(why, MPIOX_DARSHAN_BLAME, "cannot be opened: %s", strerror(errno));
        if (fd >= 0)
            close(fd);
        return -1;
    }
    const ssize_t got = S_ISREG(info.st_mode) ? pread(fd, head, sizeof(head), 0) : 0;
    const int error = errno;
    close(fd);
    memcpy(&magic, head + 8, sizeof(magic));
    reader->swap = magic != MAGIC;
    if (!S_ISREG(info.st_mode))
        snprintf(why, MPIOX_DARSHAN_BLAME, "is not a regular file");
    else if (got < 0)
        snprintf(why, MPIOX_DARSHAN_BLAME, "cannot be read: %s", strerror(error));
    else if (info.st_size == 0)
        snprintf(why, MPIOX_DARSHAN_BLAME, "is empty");
    else if (memcmp(head, "\x1f\x8b", 2) == 0 || memcmp(head, "BZh", 3) == 0)
        snprintf(why, MPIOX_DARSHAN_BLAME,
                 "is a compressed file: a log of Darshan 2, which libdarshan-util %s does not "
                 "read, or a log that was compressed again",
                 reader->library->version);
    else if (got < (ssize_t)sizeof(head))
        snprintf(why, MPIOX_DARSHAN_BLAME, "is no Darshan log, or cut off in its header: it has %lld bytes",
                 (long long)info.st_size);
    else if (magic != MAGIC && __builtin_bswap64(magic) != MAGIC)
        snprintf(why, MPIOX_DARSHAN_BLAME, "is no Darshan log: it has not its magic number");
    else
        return check_version(reader, head);
    return -1;
}

static int read_job(log_reader *reader)
{
    const mpiox_darshan_library *library = reader->library;

    reader->log = library->open(reader->path);
    if (reader->log == NULL) {
        char message[MPIOX_DARSHAN_BLAME];

        take_message(reader->messages, message, sizeof(message));
        if (message[0] == '\0' || strstr(message, "incompatible") != NULL)
            snprintf(message, sizeof(message),
                     "has version %s of the log format, which libdarshan-util %s cannot read: "
                     "install a newer package darshan",
                     reader->version, library->version);
        return blame(reader, MPIOX_DARSHAN_STAGE_OPEN, message);
    }
    memset(&reader->job, 0, sizeof(reader->job));
    if (library->get_job(reader->log, &reader->job) != 0)
        return blame(reader, MPIOX_DARSHAN_STAGE_OPEN, "its job cannot be read, it is cut off or damaged");
    memset(reader->exe, 0, sizeof(reader->exe));
    if (library->get_exe(reader->log, reader->exe) != 0)
        reader->exe[0] = '\0';
    reader->exe[TEXT_BYTES - 1] = '\0';
    if (library->get_runtime(reader->log, reader->job, &reader->run_time) != 0)
        reader->run_time = -1.0;
    if (reader->job.nprocs < 1 || reader->job.nprocs > INT32_MAX || reader->job.start_time_sec < 0)
        return blame(reader, MPIOX_DARSHAN_STAGE_OPEN,
                     "is damaged: its job has an impossible start or number of ranks");
    return 0;
}

/* Blame the parts whose bytes are not all there: the library would take what there is for all. */
static void check_regions(log_reader *reader)
{
    static const struct {
        int module, stage;
    } parts[] = {{MODULE_POSIX, MPIOX_DARSHAN_STAGE_POSIX},
                 {MODULE_STDIO, MPIOX_DARSHAN_STAGE_STDIO},
                 {MODULE_MPIIO, MPIOX_DARSHAN_STAGE_MPIIO},
                 {MODULE_LUSTRE, MPIOX_DARSHAN_STAGE_LUSTRE}};
    static const char *const why[] = {"", "", "the log is cut off before its end", "its bytes are cut off or damaged"};
    mpiox_darshan_regions *found = &reader->regions;
    uint64_t used = 0;

    for (size_t k = 0; k < sizeof(parts) / sizeof(parts[0]); k++)
        used |= 1ULL << parts[k].module;
    mpiox_darshan_regions_check(reader->library, reader->path, used, &reader->progress->beat, found);
    if (found->names != MPIOX_DARSHAN_WHOLE)
        blame(reader, MPIOX_DARSHAN_STAGE_NAMES, why[found->names]);
    for (size_t k = 0; k < sizeof(parts) / sizeof(parts[0]); k++) {
        int *state = &found->modules[parts[k].module];
        if (*state <= MPIOX_DARSHAN_GAP)
            continue;
        blame(reader, parts[k].stage, why[*state]);
        *state = MPIOX_DARSHAN_WHOLE; /* explained by its stage */
    }
}

static int read_modules(log_reader *reader)
{
    mpiox_darshan_module *modules = NULL;
    int count = 0;

    memset(reader->module_version, 0, sizeof(reader->module_version));
    memset(reader->module_partial, 0, sizeof(reader->module_partial));
    reader->library->get_modules(reader->log, &modules, &count);
    for (int k = 0; k < count && modules != NULL; k++) {
        if (modules[k].idx < 0 || modules[k].idx >= MAX_MODULES)
            continue;
        reader->module_version[modules[k].idx] = modules[k].ver > 0 ? modules[k].ver : -1;
        /* of a module that it has no name for, libdarshan-util leaves the flag as the memory was */
        reader->module_partial[modules[k].idx] = modules[k].name != NULL && modules[k].partial_flag != 0;
    }
    if (modules != NULL)
        reader->library->free(modules);
    return 0;
}

static int read_names(log_reader *reader)
{
    reader->name_count = -1; /* on an error the library closes the log and leaves this alone */
    reader->library->get_names(reader->log, &reader->names, &reader->name_count);
    if (reader->name_count < 0) {
        reader->name_count = 0;
        reader->names = NULL;
        reader->log = NULL;
        return blame(reader, MPIOX_DARSHAN_STAGE_NAMES, "cannot be read");
    }
    for (int k = 0; k < reader->name_count; k++)
        if (mpiox_darshan_map_find(&reader->name_map, reader->names[k].id) < 0 &&
            mpiox_darshan_map_add(&reader->name_map, reader->names[k].id, k) != MPIOX_OK)
            return blame(reader, MPIOX_DARSHAN_STAGE_NAMES, "too many for the memory");
    return 0;
}

static int read_mounts(log_reader *reader)
{
    reader->mount_count = 0;
    if (reader->library->get_mounts(reader->log, &reader->mounts, &reader->mount_count) == 0)
        return 0;
    reader->mount_count = 0;
    return blame(reader, MPIOX_DARSHAN_STAGE_MOUNTS, "cannot be read");
}

/* In version 1 of POSIX (Darshan 3.0) calls of STDIO were mixed in; the library leaves out records that have any. */
static int64_t count_left_out(log_reader *reader, int64_t delivered)
{
    int64_t bytes = 0;
    int got;

    while ((got = reader->library->get_mod(reader->log, MODULE_POSIX, reader->record, RECORD_BYTES)) > 0) {
        bytes += got;
        reader->progress->beat++;
        if (got < RECORD_BYTES)
            break; /* the end; the next call would begin anew */
    }
    return got >= 0 && bytes / POSIX_1_BYTES > delivered ? bytes / POSIX_1_BYTES - delivered : 0;
}

static int read_records(log_reader *reader, int kind, int module, int stage)
{
    const mpiox_darshan_kind *shape = &reader->library->kinds[kind];
    void *record = reader->record;
    int64_t delivered = 0;
    int got;

    if (sizeof(mpiox_darshan_record) + sizeof(int64_t) * (size_t)(shape->counters + shape->doubles) > RECORD_BYTES / 2)
        return blame(reader, stage, "its records are larger than expected");
    while ((got = reader->library->get_record(reader->log, module, &record)) == 1) {
        if (mpiox_darshan_files_join(&reader->files, reader->library, kind, record) != MPIOX_OK ||
            mpiox_darshan_summary_add(&reader->summary, reader->library, kind, record) != MPIOX_OK)
            return blame(reader, stage, "too many records for the memory");
        reader->progress->beat++;
        delivered++;
    }
    if (got == 0 && module == MODULE_POSIX && reader->module_version[module] == 1)
        reader->left_out = count_left_out(reader, delivered);
    return got < 0 ? blame(reader, stage, "its records cannot be read") : 0;
}

static int read_layouts(log_reader *reader)
{
    const int code = mpiox_darshan_layout_read(&reader->files, reader->library, reader->log, MODULE_LUSTRE,
                                               reader->module_version[MODULE_LUSTRE], reader->swap,
                                               &reader->progress->beat);

    if (code == MPIOX_E_UNSUPPORTED)
        return blame(reader, MPIOX_DARSHAN_STAGE_LUSTRE, "its version is unknown");
    if (code != MPIOX_OK)
        return blame(reader, MPIOX_DARSHAN_STAGE_LUSTRE,
                     code == MPIOX_E_NOMEM ? "too many records for the memory" : "its records are damaged");
    return 0;
}

/* ---- the rows ---- */

static void set_text(log_reader *reader, int lengths, const char *text)
{
    mpiox_darshan_rows_put_text(reader->rows, lengths, text, text != NULL ? (int64_t)strlen(text) : 0);
}

/* The mount point of a file: the longest that is a prefix of whole names. NULL when there is none. */
static const mpiox_darshan_mount *mount_of(const log_reader *reader, const char *name)
{
    const mpiox_darshan_mount *best = NULL;
    size_t best_length = 0;

    for (int k = 0; name != NULL && k < reader->mount_count; k++) {
        const mpiox_darshan_mount *mount = &reader->mounts[k];
        const size_t length = strnlen(mount->path, sizeof(mount->path));

        if (length > best_length && strncmp(name, mount->path, length) == 0 &&
            (mount->path[length - 1] == '/' || name[length] == '/' || name[length] == '\0')) {
            best = mount;
            best_length = length;
        }
    }
    return best;
}

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *at = data;

    for (size_t k = 0; k < bytes; k++)
        hash = (hash ^ at[k]) * 0x100000001b3ULL;
    return hash;
}

/* A positive number made of the job and of the file's name without its folder. */
static int64_t identity(const log_reader *reader)
{
    const char *slash = strrchr(reader->path, '/');
    const char *name = slash != NULL ? slash + 1 : reader->path;
    const mpiox_darshan_job *job = &reader->job;
    const int64_t numbers[] = {job->uid,          job->start_time_sec, job->start_time_nsec,
                               job->end_time_sec, job->end_time_nsec,  job->nprocs,
                               job->jobid};
    uint64_t hash = hash_bytes(0xcbf29ce484222325ULL, numbers, sizeof(numbers));

    hash = hash_bytes(hash, reader->exe, strlen(reader->exe) + 1);
    hash = hash_bytes(hash, name, strlen(name));
    hash = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15ULL;
    hash = (hash ^ hash >> 29) & INT64_MAX;
    return hash != 0 ? (int64_t)hash : 1;
}

static void forget_activity(mpiox_darshan_slot *slots)
{
    static const int others[] = {
        MPIOX_DARSHAN_FILE_ranks,           MPIOX_DARSHAN_FILE_root_bytes_written, MPIOX_DARSHAN_FILE_read_start,
        MPIOX_DARSHAN_FILE_read_end,        MPIOX_DARSHAN_FILE_write_start,        MPIOX_DARSHAN_FILE_write_end,
        MPIOX_DARSHAN_FILE_max_offset_read, MPIOX_DARSHAN_FILE_max_offset_written,
    };

    for (int k = 0; k < MPIOX_DARSHAN_ACTIVITY_WIDTH; k++)
        slots[k].i = MPIOX_DARSHAN_NONE;
    for (size_t k = 0; k < sizeof(others) / sizeof(others[0]); k++)
        slots[others[k]].i = MPIOX_DARSHAN_NONE;
}

static int is_time(int activity)
{
    return activity == MPIOX_DARSHAN_FILE_read_time || activity == MPIOX_DARSHAN_FILE_write_time ||
           activity == MPIOX_DARSHAN_FILE_meta_time;
}

static void add_to_job(mpiox_darshan_slot *job, const mpiox_darshan_file *file)
{
    for (int k = 0; k < MPIOX_DARSHAN_ACTIVITY_WIDTH; k++) {
        if (file->slots[k].i == MPIOX_DARSHAN_NONE)
            continue;
        if (job[k].i == MPIOX_DARSHAN_NONE)
            job[k] = file->slots[k];
        else if (is_time(k))
            job[k].f += file->slots[k].f;
        else if (__builtin_add_overflow(job[k].i, file->slots[k].i, &job[k].i))
            job[k].i = INT64_MAX;
    }
    job[MPIOX_DARSHAN_JOB_files].i += file->opened;
    job[MPIOX_DARSHAN_JOB_files_read].i += file->slots[MPIOX_DARSHAN_FILE_bytes_read].i > 0;
    job[MPIOX_DARSHAN_JOB_files_written].i += file->slots[MPIOX_DARSHAN_FILE_bytes_written].i > 0;
}

static void put_file(log_reader *reader, mpiox_darshan_file *file, int64_t log_id)
{
    const int64_t at = mpiox_darshan_map_find(&reader->name_map, file->id);
    const char *name = at >= 0 ? reader->names[at].name : NULL;
    const mpiox_darshan_mount *mount = mount_of(reader, name);
    mpiox_darshan_slot *slots = file->slots;

    slots[MPIOX_DARSHAN_FILE_job_id].i = reader->job.jobid;
    slots[MPIOX_DARSHAN_FILE_log_id].i = log_id;
    slots[MPIOX_DARSHAN_FILE_file_id].i = (int64_t)file->id;
    slots[MPIOX_DARSHAN_FILE_processes].i = reader->job.nprocs;
    mpiox_darshan_rows_put(reader->rows, MPIOX_DARSHAN_BUFFER_file, slots, sizeof(file->slots));
    set_text(reader, MPIOX_DARSHAN_BUFFER_file_file_lengths, name);
    set_text(reader, MPIOX_DARSHAN_BUFFER_file_mount_lengths, mount != NULL ? mount->path : NULL);
    set_text(reader, MPIOX_DARSHAN_BUFFER_file_fs_type_lengths, mount != NULL ? mount->type : NULL);
    mpiox_darshan_rows_put(reader->rows, MPIOX_DARSHAN_BUFFER_file_osts_lengths, &file->ost_count, sizeof(int32_t));
    mpiox_darshan_rows_put(reader->rows, MPIOX_DARSHAN_BUFFER_file_osts, reader->files.osts + file->osts,
                           file->ost_count * (int64_t)sizeof(int32_t));
}

/* The name of a module; of one that came later, a number in `text`. */
static const char *module_name(int module, char *text, size_t text_bytes)
{
    if (module < MODULE_NAMES)
        return module_names[module];
    snprintf(text, text_bytes, "module %d", module);
    return text;
}

static void put_modules(log_reader *reader)
{
    char text[MODULES_BYTES] = "", number[16];
    size_t used = 0;

    for (int k = 0; k < MAX_MODULES; k++)
        if (reader->module_version[k] != 0)
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", used > 0 ? "\n" : "",
                                     module_name(k, number, sizeof(number)));
    set_text(reader, MPIOX_DARSHAN_BUFFER_job_modules_lengths, text);
}

static void put_app(log_reader *reader)
{
    const size_t length = strcspn(reader->exe, " \t");
    size_t start = length;

    while (start > 0 && reader->exe[start - 1] != '/')
        start--;
    mpiox_darshan_rows_put_text(reader->rows, MPIOX_DARSHAN_BUFFER_job_app_lengths, reader->exe + start,
                                (int64_t)(length - start));
}

static int uses(const log_reader *reader, int a, int b)
{
    return reader->module_version[a] != 0 || reader->module_version[b] != 0;
}

static void put_job(log_reader *reader, mpiox_darshan_slot *slots, int64_t log_id, int partial)
{
    const mpiox_darshan_job *job = &reader->job;

    slots[MPIOX_DARSHAN_JOB_job_id].i = job->jobid;
    slots[MPIOX_DARSHAN_JOB_log_id].i = log_id;
    slots[MPIOX_DARSHAN_JOB_uid].i = job->uid;
    slots[MPIOX_DARSHAN_JOB_start_time].f = (double)job->start_time_sec + (double)job->start_time_nsec * 1e-9;
    if (job->end_time_sec >= job->start_time_sec)
        slots[MPIOX_DARSHAN_JOB_end_time].f = (double)job->end_time_sec + (double)job->end_time_nsec * 1e-9;
    if (isfinite(reader->run_time) && reader->run_time >= 0.0)
        slots[MPIOX_DARSHAN_JOB_run_time].f = reader->run_time + 0.0;
    slots[MPIOX_DARSHAN_JOB_processes].i = job->nprocs;
    slots[MPIOX_DARSHAN_JOB_partial].i = partial;
    slots[MPIOX_DARSHAN_JOB_uses_posix].i = uses(reader, MODULE_POSIX, MODULE_POSIX);
    slots[MPIOX_DARSHAN_JOB_uses_stdio].i = uses(reader, MODULE_STDIO, MODULE_STDIO);
    slots[MPIOX_DARSHAN_JOB_uses_mpiio].i = uses(reader, MODULE_MPIIO, MODULE_MPIIO);
    slots[MPIOX_DARSHAN_JOB_uses_hdf5].i = uses(reader, MODULE_H5F, MODULE_H5D);
    slots[MPIOX_DARSHAN_JOB_uses_pnetcdf].i = uses(reader, MODULE_NC_FILE, MODULE_NC_VAR);
    slots[MPIOX_DARSHAN_JOB_uses_lustre].i = uses(reader, MODULE_LUSTRE, MODULE_LUSTRE);
    mpiox_darshan_rows_put(reader->rows, MPIOX_DARSHAN_BUFFER_job, slots,
                           MPIOX_DARSHAN_JOB_WIDTH * (int64_t)sizeof(*slots));
    set_text(reader, MPIOX_DARSHAN_BUFFER_job_exe_lengths, reader->exe);
    put_app(reader);
    set_text(reader, MPIOX_DARSHAN_BUFFER_job_log_version_lengths, reader->version);
    put_modules(reader);
}

/* Write why the log is partial; 1 when it is. */
static int explain(const log_reader *reader, char *text, size_t text_bytes)
{
    char number[16];
    int used = 0;

    text[0] = '\0';
    for (int k = 0; k < MPIOX_DARSHAN_STAGES; k++)
        if (reader->blame.why[k][0] != '\0' && (size_t)used < text_bytes)
            used += snprintf(text + used, text_bytes - (size_t)used, "%s%s left out: %s", used > 0 ? "; " : "",
                             mpiox_darshan_stage_name(k), reader->blame.why[k]);
    for (int k = 0; k < MAX_MODULES; k++)
        if (reader->regions.modules[k] != MPIOX_DARSHAN_WHOLE && (size_t)used < text_bytes)
            used += snprintf(text + used, text_bytes - (size_t)used, "%s%s %s", used > 0 ? "; " : "",
                             module_name(k, number, sizeof(number)),
                             reader->regions.modules[k] == MPIOX_DARSHAN_GAP
                                 ? "may lack records: behind it are bytes that the header gives to none"
                                 : "is cut off");
    for (int k = 0; k < MAX_MODULES; k++)
        if (reader->module_partial[k] && (size_t)used < text_bytes)
            used += snprintf(text + used, text_bytes - (size_t)used,
                             "%s%s is incomplete: Darshan ran out of memory for its records in the run",
                             used > 0 ? "; " : "", module_name(k, number, sizeof(number)));
    if (reader->left_out > 0 && (size_t)used < text_bytes)
        used += snprintf(text + used, text_bytes - (size_t)used,
                         "%s%lld records of POSIX left out: of Darshan 3.0, with calls of STDIO among them",
                         used > 0 ? "; " : "", (long long)reader->left_out);
    return used > 0;
}

static void put_log(mpiox_darshan_rows *rows, int64_t status, int64_t log_id, int64_t files, const char *reason)
{
    const int64_t slots[MPIOX_DARSHAN_LOG_WIDTH] = {
        [MPIOX_DARSHAN_LOG_status] = status,
        [MPIOX_DARSHAN_LOG_log_id] = log_id,
        [MPIOX_DARSHAN_LOG_files] = files,
    };

    mpiox_darshan_rows_put(rows, MPIOX_DARSHAN_BUFFER_log, slots, sizeof(slots));
    mpiox_darshan_rows_put_text(rows, MPIOX_DARSHAN_BUFFER_log_reason_lengths, reason, (int64_t)strlen(reason));
}

void mpiox_darshan_log_skip(mpiox_darshan_rows *rows, const char *why)
{
    put_log(rows, 2, 0, 0, why);
}

static void put_rows(log_reader *reader)
{
    const double start = (double)reader->job.start_time_sec + (double)reader->job.start_time_nsec * 1e-9;
    const int64_t log_id = identity(reader);
    mpiox_darshan_slot job[MPIOX_DARSHAN_JOB_WIDTH];
    char reason[REASON_BYTES];
    const int partial = explain(reader, reason, sizeof(reason));
    const int lost = reader->blame.why[MPIOX_DARSHAN_STAGE_POSIX][0] != '\0'; /* STDIO alone is nearly nothing */

    for (int k = 0; k < MPIOX_DARSHAN_JOB_WIDTH; k++)
        job[k].i = MPIOX_DARSHAN_NONE;
    job[MPIOX_DARSHAN_JOB_files].i = job[MPIOX_DARSHAN_JOB_files_read].i = job[MPIOX_DARSHAN_JOB_files_written].i = 0;
    mpiox_darshan_files_finish(&reader->files, reader->job.nprocs, start, reader->run_time);
    for (int64_t k = 0; k < reader->files.count; k++) {
        mpiox_darshan_file *file = &reader->files.files[k];

        if (lost)
            forget_activity(file->slots);
        put_file(reader, file, log_id);
        add_to_job(job, file);
    }
    if (lost || reader->blame.why[MPIOX_DARSHAN_STAGE_STDIO][0] != '\0' ||
        reader->blame.why[MPIOX_DARSHAN_STAGE_MPIIO][0] != '\0')
        job[MPIOX_DARSHAN_JOB_files].i = MPIOX_DARSHAN_NONE;
    if (lost)
        job[MPIOX_DARSHAN_JOB_files_read].i = job[MPIOX_DARSHAN_JOB_files_written].i = MPIOX_DARSHAN_NONE;
    put_job(reader, job, log_id, partial);
    mpiox_darshan_summary_finish(&reader->summary, log_id);
    mpiox_darshan_rows_put(reader->rows, MPIOX_DARSHAN_BUFFER_summary, reader->summary.slots,
                           sizeof(reader->summary.slots));
    put_log(reader->rows, partial, log_id, reader->files.count, reason);
}

/* ---- a log ---- */

static void close_log(log_reader *reader)
{
    for (int k = 0; k < reader->name_count; k++)
        reader->library->free(reader->names[k].name);
    if (reader->names != NULL)
        reader->library->free(reader->names);
    if (reader->mounts != NULL)
        reader->library->free(reader->mounts);
    if (reader->log != NULL)
        reader->library->close(reader->log);
    reader->names = NULL;
    reader->mounts = NULL;
    reader->name_count = reader->mount_count = 0;
    reader->log = NULL;
    mpiox_darshan_map_free(&reader->name_map);
    mpiox_darshan_files_clear(&reader->files);
    mpiox_darshan_summary_clear(&reader->summary);
}

static int read_module(log_reader *reader, int kind, int module, int stage)
{
    if (reader->module_version[module] == 0 || !begin(reader, stage))
        return 0;
    return read_records(reader, kind, module, stage);
}

/* Read every part that is not blamed; 0, or -1 when another one has been blamed. */
static int read_parts(log_reader *reader)
{
    if (read_modules(reader) != 0)
        return -1;
    if (begin(reader, MPIOX_DARSHAN_STAGE_MOUNTS) && read_mounts(reader) != 0)
        return -1;
    if (begin(reader, MPIOX_DARSHAN_STAGE_NAMES) && read_names(reader) != 0)
        return -1;
    if (read_module(reader, MPIOX_DARSHAN_POSIX, MODULE_POSIX, MPIOX_DARSHAN_STAGE_POSIX) != 0 ||
        read_module(reader, MPIOX_DARSHAN_MPIIO, MODULE_MPIIO, MPIOX_DARSHAN_STAGE_MPIIO) != 0)
        return -1;
    if (reader->module_version[MODULE_LUSTRE] != 0 && begin(reader, MPIOX_DARSHAN_STAGE_LUSTRE) &&
        read_layouts(reader) != 0)
        return -1;
    return read_module(reader, MPIOX_DARSHAN_STDIO, MODULE_STDIO, MPIOX_DARSHAN_STAGE_STDIO);
}

static void read_all(log_reader *reader)
{
    char text[MPIOX_DARSHAN_BLAME];

    for (int attempt = 0; attempt <= MPIOX_DARSHAN_STAGES; attempt++) {
        if (!begin(reader, MPIOX_DARSHAN_STAGE_OPEN) || check_file(reader) != 0)
            break;
        if (attempt == 0)
            check_regions(reader);
        if (read_job(reader) != 0)
            break;
        const int done = read_parts(reader) == 0;
        if (done)
            put_rows(reader);
        close_log(reader);
        if (done)
            return;
    }
    close_log(reader);
    mpiox_darshan_log_skip(reader->rows, reader->blame.why[MPIOX_DARSHAN_STAGE_OPEN][0] != '\0'
                                             ? reader->blame.why[MPIOX_DARSHAN_STAGE_OPEN]
                                             : "cannot be read");
    take_message(reader->messages, text, sizeof(text));
}

int mpiox_darshan_log_read(const mpiox_darshan_library *library, const char *path, const mpiox_darshan_blame *blamed,
                           int messages, mpiox_darshan_progress *progress, mpiox_darshan_rows *rows)
{
    int64_t before[MPIOX_DARSHAN_BUFFER_COUNT];
    log_reader *reader = calloc(1, sizeof(*reader));

    if (reader == NULL)
        return MPIOX_E_NOMEM;
    for (int k = 0; k < MPIOX_DARSHAN_BUFFER_COUNT; k++)
        before[k] = rows->buffers[k].used;
    reader->library = library;
    reader->path = path;
    reader->messages = messages;
    reader->progress = progress;
    reader->rows = rows;
    if (blamed != NULL)
        reader->blame = *blamed;
    mpiox_darshan_summary_clear(&reader->summary);
    read_all(reader);
    mpiox_darshan_files_release(&reader->files);
    mpiox_darshan_summary_release(&reader->summary);
    free(reader);
    if (!rows->failed)
        return MPIOX_OK;
    for (int k = 0; k < MPIOX_DARSHAN_BUFFER_COUNT; k++)
        rows->buffers[k].used = before[k];
    rows->failed = 0;
    return MPIOX_E_NOMEM;
}
