/*
 * contained.c - MPI-IO under limits that a container, a shell or a batch system sets.
 *
 * usage: contained FILE [early] LIMIT...     run with any number of ranks
 *
 *   nofile=N   ulimit -n: N descriptors more than are open            fsize=BYTES   ulimit -f
 *   as=BYTES   ulimit -v: so much more memory than is mapped          memlock=BYTES ulimit -l
 *   refuse=CALL:ERRNO   seccomp: the system call fails (refuse() names those that can)
 *   hide=FOLDER:OPTIONS an empty tmpfs with these options is mounted over the folder, for this rank alone
 *   readonly   nothing can be written but the folder of FILE: not the root, /tmp, /dev/shm
 *   ignore     SIGXFSZ is ignored, as Python does
 *
 * Limits are set behind MPI_Init, with "early" before it. Small pieces of all ranks in turn are written and read by
 * collectives and independently, each rank reading what another has written. Rank 0 prints a line for each step, with
 * what came of it on each rank: 0, the class of the error, or -1 for wrong data without an error; "done" is the last.
 * The bytes of the file depend on the number of ranks alone.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "report.h"

enum { PIECE = 24, PIECES = 6000, BYTES = PIECE * PIECES };

static char data[BYTES], back[BYTES];

/* ---- limits ------------------------------------------------------------------------------------------------------ */

static void fail(const char *what)
{
    fprintf(stderr, "contained: %s: %s\n", what, strerror(errno));
    exit(99);
}

static void limit(int resource, unsigned long long value, const char *name)
{
    struct rlimit both;

    if (getrlimit((__rlimit_resource_t)resource, &both) != 0)
        fail(name);
    both.rlim_cur = value; /* the soft one, as ulimit -S: what fails is the same */
    if (both.rlim_cur > both.rlim_max)
        both.rlim_cur = both.rlim_max;
    if (setrlimit((__rlimit_resource_t)resource, &both) != 0)
        fail(name);
}

static unsigned long long mapped_bytes(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    if (file == NULL || fscanf(file, "%llu", &pages) != 1)
        fail("/proc/self/statm");
    fclose(file);
    return pages * (unsigned long long)sysconf(_SC_PAGESIZE);
}

static void refuse(const char *text)
{
    static const struct {
        const char *name;
        unsigned number;
    } calls[] = {
        {"futex:", SYS_futex},
        {"getrandom:", SYS_getrandom},
        {"io_uring_setup:", SYS_io_uring_setup},
        {"madvise:", SYS_madvise},
        {"memfd_create:", SYS_memfd_create},
        {"pidfd_open:", SYS_pidfd_open},
        {"process_vm_readv:", SYS_process_vm_readv},
    };

    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        const size_t length = strlen(calls[i].name);
        if (strncmp(text, calls[i].name, length) != 0)
            continue;
        struct sock_filter filter[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i].number, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((unsigned)atoi(text + length) & SECCOMP_RET_DATA)),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        const struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
            fail("seccomp");
        return;
    }
    errno = EINVAL;
    fail(text);
}

static void own_mounts(void)
{
    static int done;

    if (!done && (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0))
        fail("mount namespace");
    done = 1;
}

static void hide(const char *text)
{
    char folder[256] = "";
    const char *colon = strchr(text, ':');

    snprintf(folder, sizeof folder, "%.*s", (int)(colon != NULL ? colon - text : (long)strlen(text)), text);
    own_mounts();
    if (mount("none", folder, "tmpfs", 0, colon != NULL ? colon + 1 : "") != 0)
        fail(text);
}

static void make_read_only(const char *file)
{
    char folder[4096];
    const unsigned long flags = MS_REMOUNT | MS_BIND | MS_RDONLY;

    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(file, '/') - file), file);
    own_mounts();
    if (mount(folder, folder, NULL, MS_BIND, NULL) != 0 || mount(NULL, "/", NULL, flags, NULL) != 0 ||
        mount(NULL, "/dev/shm", NULL, flags, NULL) != 0)
        fail("read-only mounts");
    (void)mount(NULL, "/tmp", NULL, flags, NULL); /* where it is a file system of its own */
    if (access("/tmp", W_OK) == 0 || access("/dev/shm", W_OK) == 0)
        fail("read-only mounts");
}

static void set_limits(const char *file, int count, char **words)
{
    for (int i = 0; i < count; i++) {
        const char *equals = strchr(words[i], '='), *value = equals != NULL ? equals + 1 : "0";
        const unsigned long long number = strtoull(value, NULL, 10);

        if (strncmp(words[i], "nofile=", 7) == 0)
            limit(RLIMIT_NOFILE, (unsigned long long)dup(0) + number, words[i]);
        else if (strncmp(words[i], "fsize=", 6) == 0)
            limit(RLIMIT_FSIZE, number, words[i]);
        else if (strncmp(words[i], "as=", 3) == 0)
            limit(RLIMIT_AS, mapped_bytes() + number, words[i]);
        else if (strncmp(words[i], "memlock=", 8) == 0)
            limit(RLIMIT_MEMLOCK, number, words[i]);
        else if (strncmp(words[i], "refuse=", 7) == 0)
            refuse(value);
        else if (strncmp(words[i], "hide=", 5) == 0)
            hide(value);
        else if (strcmp(words[i], "readonly") == 0)
            make_read_only(file);
        else if (strcmp(words[i], "ignore") == 0)
            signal(SIGXFSZ, SIG_IGN);
        else if (strcmp(words[i], "early") != 0)
            fail(words[i]);
    }
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

/* True if it went well on all ranks. */
static int step(const char *name, int mine)
{
    int *all = malloc((size_t)ranks * sizeof *all), bad = 0, length;
    char line[1024];

    if (all == NULL)
        fail(name);
    MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
    length = snprintf(line, sizeof line, "step %s", name);
    for (int i = 0; i < ranks; i++) {
        bad += all[i] != 0;
        length += snprintf(line + length, sizeof line - (size_t)length, " %d", all[i]);
    }
    line[length++] = '\n';
    free(all);
    if (rank == 0 && write(STDOUT_FILENO, line, (size_t)length) != length)
        exit(98);
    return bad == 0;
}

static void fill(char *out, int whose, int part)
{
    for (int i = 0; i < BYTES; i++) {
        const long long piece = (long long)(i / PIECE) * ranks + whose;
        out[i] = (char)byte_at(((long long)part * ranks * BYTES) + piece * PIECE + i % PIECE, 1);
    }
}

/* The pieces of rank `whose` in part 0 (by collectives) or 1 (independently) of the file. */
static int look_at(MPI_File file, int whose, int part)
{
    MPI_Datatype pieces;
    int code;

    MPI_Type_vector(PIECES, PIECE, PIECE * ranks, MPI_BYTE, &pieces);
    MPI_Type_commit(&pieces);
    code = MPI_File_set_view(file, (MPI_Offset)part * ranks * BYTES + (MPI_Offset)whose * PIECE, MPI_BYTE, pieces,
                             "native", MPI_INFO_NULL);
    MPI_Type_free(&pieces);
    return class_of(code);
}

static void part_of_file(MPI_File file, int part)
{
    const int other = (rank + ranks / 2 + 1) % ranks;
    const char *names[2][4] = {{"view", "write_at_all", "view", "read_at_all"},
                               {"view", "write_at", "view", "read_at"}};
    int code;

    fill(data, rank, part);
    if (!step(names[part][0], look_at(file, rank, part)))
        return;
    code = part ? MPI_File_write_at(file, 0, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE)
                : MPI_File_write_at_all(file, 0, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
    const int written = step(names[part][1], class_of(code));
    code = MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    step("sync", class_of(code));
    MPI_File_sync(file);
    if (!step(names[part][2], look_at(file, other, part)))
        return;
    fill(data, other, part);
    memset(back, 0, sizeof back);
    code = part ? MPI_File_read_at(file, 0, back, BYTES, MPI_BYTE, MPI_STATUS_IGNORE)
                : MPI_File_read_at_all(file, 0, back, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
    step(names[part][3], code == MPI_SUCCESS && written && memcmp(back, data, sizeof back) != 0 ? -1 : class_of(code));
}

int main(int argc, char **argv)
{
    MPI_File file = MPI_FILE_NULL;
    const int early = argc > 2 && strcmp(argv[2], "early") == 0;
    int code;

    if (early)
        set_limits(argv[1], argc - 2, argv + 2);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!early)
        set_limits(argv[1], argc - 2, argv + 2);
    MPI_Barrier(MPI_COMM_WORLD);
    code = MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file);
    if (step("open", class_of(code))) {
        part_of_file(file, 0);
        part_of_file(file, 1);
        step("close", class_of(MPI_File_close(&file)));
    }
    step("done", 0);
    MPI_Finalize();
    return 0;
}
