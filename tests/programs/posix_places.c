/*
 * posix_places.c - POSIX calls on staged files from where a program may make them, besides the plain ones.
 *
 * usage: posix_places FOLDER handler|children|threads|ends
 *   handler   in a handler of a signal that comes all the time, whatever the rank is just doing
 *   children  in children: forked, with and without exec, vforked, spawned; while another thread waits
 *   threads   in a thread, while the rank opens and closes files, and ends MPI
 *   ends      before MPI_Init, and after MPI_Finalize, by each rank
 * Says "ok" and what it has seen, rank by rank.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "report.h"

enum { BLOCK = 20000, ROUNDS = 6, NAME_BYTES = 400 };

extern char **environ;

static char folder[NAME_BYTES - 100], name[NAME_BYTES];
static atomic_int handled, found, ended;

static void make(const char *path)
{
    static unsigned char data[BLOCK];
    MPI_File file;

    memset(data, 1 + rank, sizeof data);
    if (MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_File_write_at_all(file, (MPI_Offset)rank * BLOCK, data, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void name_file(int number)
{
    snprintf(name, sizeof name, "%s/file%d", folder, number);
}

/* Is it there by its own name, as any library would be told? */
static int is_there(void)
{
    return syscall(SYS_faccessat, AT_FDCWD, name, F_OK) == 0;
}

static void say(const char *what, int value)
{
    char line[200];
    const int length = snprintf(line, sizeof line, "%s %d %d\n", what, rank, value);

    if (write(STDOUT_FILENO, line, (size_t)length) != length)
        MPI_Abort(MPI_COMM_WORLD, 4);
}

/* ---- handlers ---------------------------------------------------------------------------------------------------- */

static void handle(int signal)
{
    const int before = errno;
    struct stat status;

    (void)signal;
    atomic_fetch_add(&found, stat(name, &status) == 0);
    const int fd = open(name, O_RDONLY);

    if (fd >= 0)
        close(fd);
    (void)access(name, R_OK);
    atomic_fetch_add(&handled, 1);
    errno = before;
}

static void handlers(void)
{
    const struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    const struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
    struct stat status;
    int fine = 1;

    name_file(0);
    sigaction(SIGALRM, &action, NULL);
    for (int i = 1; i <= ROUNDS; i++) {
        make(name);
        setitimer(ITIMER_REAL, &often, NULL);
        for (int k = 0, until = atomic_load(&handled) + 20; k < 2000 || atomic_load(&handled) < until; k++) {
            void *memory[8]; /* the lock of malloc is held most of the time */

            for (int m = 0; m < 8; m++)
                memory[m] = malloc((size_t)(k % 7 + 1) * 1500 + (size_t)m * 700);
            for (int m = 0; m < 8; m++)
                free(memory[m]);
        }
        if (rank == i % ranks) /* in the middle of a wait */
            fine &= stat(name, &status) == 0 && status.st_size == (off_t)ranks * BLOCK;
        setitimer(ITIMER_REAL, &never, NULL);
        MPI_Barrier(MPI_COMM_WORLD);
        name_file(i);
    }
    say(fine && atomic_load(&handled) > 100 ? "ok" : "FAILED", 0);
}

/* ---- children ---------------------------------------------------------------------------------------------------- */

static void *look_on(void *context)
{
    struct stat status;

    return stat(name, &status) == 0 ? context : NULL;
}

static int status_of(pid_t pid)
{
    int status = -1;

    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* 0: the file is there, 1: it is not. Others: something went wrong. */
static int child(int how)
{
    char command[2 * NAME_BYTES];
    char *const words[] = {(char *)"test", (char *)"-e", name, NULL};
    struct stat status;
    pid_t pid = -1;

    snprintf(command, sizeof command, "test -e %s", name);
    if (how == 0 && (pid = fork()) == 0)
        _exit(stat(name, &status) == 0 ? 0 : 1);
    if (how == 1 && (pid = fork()) == 0) {
        execvp("test", words);
        _exit(9);
    }
    if (how == 2 && (pid = vfork()) == 0)
        _exit(access(name, F_OK) == 0 ? 0 : 1);
    if (how == 3 && (pid = vfork()) == 0) {
        execvp("test", words);
        _exit(9);
    }
    if (how == 4 && posix_spawnp(&pid, "test", NULL, NULL, words, environ) != 0)
        return 9;
    if (how == 5)
        return WEXITSTATUS(system(command));
    return status_of(pid);
}

static void children(void)
{
    name_file(0);
    for (int how = 0; how < 6; how++) {
        pthread_t thread;
        void *result = NULL;
        int seen = -1;

        name_file(how);
        make(name);
        if (rank == 0) {
            const int before = is_there();

            pthread_create(&thread, NULL, look_on, name); /* holds whatever is held in a wait */
            seen = child(how);
            pthread_join(thread, &result);
            if (result != name || seen < 0 || seen > 1 || (before && seen != 0) || child(how) != 0)
                say("FAILED", how);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    say("ok", 0);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static void *look_around(void *context)
{
    struct stat status;
    char path[NAME_BYTES];

    for (int i = 0; !atomic_load(&ended); i++) {
        snprintf(path, sizeof path, "%s/file%d", folder, i % (ROUNDS + 1));
        (void)stat(path, &status);
        (void)access(path, R_OK);
    }
    return context;
}

static void threads(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, look_around, NULL);
    for (int i = 0; i <= ROUNDS; i++) {
        name_file(i);
        make(name);
    }
    MPI_Finalize();
    atomic_store(&ended, 1);
    pthread_join(thread, NULL);
    say("ok", 0);
}

/* ---- the ends of MPI --------------------------------------------------------------------------------------------- */

static void ends(int before)
{
    struct stat status;

    name_file(0);
    make(name);
    MPI_Finalize();
    const int result = stat(name, &status) == 0 && status.st_size == (off_t)ranks * BLOCK;
    const int first = open(name, O_RDONLY);

    say(before == -1 && result && first >= 0 ? "ok" : "FAILED", result);
}

int main(int argc, char **argv)
{
    struct stat status;
    int provided;

    if (argc != 3)
        return 2;
    snprintf(folder, sizeof folder, "%s", argv[1]);
    name_file(0);
    const int before = stat(name, &status);

    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (strcmp(argv[2], "handler") == 0)
        handlers();
    else if (strcmp(argv[2], "children") == 0)
        children();
    if (strcmp(argv[2], "threads") == 0)
        threads();
    else if (strcmp(argv[2], "ends") == 0)
        ends(before);
    else
        MPI_Finalize();
    return 0;
}
