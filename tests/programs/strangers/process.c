/*
 * process.c - what a program does to its process: forks, signals, limits, descriptors, traps.
 */
#include "strangers.h"

#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCK = 200, TURNS = 500, LARGE = 100 * 1024 };

/* One of each: collective by turns, independent, nonblocking; `bytes_of_all()` long. */
static void write_all_ways(MPI_File file, int seed)
{
    unsigned char *buffer = malloc(LARGE);
    const MPI_Offset base = (MPI_Offset)BLOCK * TURNS * ranks;
    MPI_Datatype view = turns_type(BLOCK, ranks);
    MPI_Request request;

    FINE(MPI_File_set_view(file, (MPI_Offset)rank * BLOCK, MPI_BYTE, view, "native", MPI_INFO_NULL));
    MPI_Type_free(&view);
    write_turns(file, BLOCK, TURNS, rank, ranks, seed);
    FINE(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    fill_from(buffer, base + (long long)rank * LARGE, LARGE, seed);
    FINE(MPI_File_write_at(file, base + (MPI_Offset)rank * LARGE, buffer, LARGE / 2, MPI_BYTE, MPI_STATUS_IGNORE));
    FINE(MPI_File_iwrite_at(file, base + (MPI_Offset)rank * LARGE + LARGE / 2, buffer + LARGE / 2, LARGE / 2, MPI_BYTE,
                            &request));
    FINE(MPI_Wait(&request, MPI_STATUS_IGNORE));
    memset(buffer, 0, LARGE);
    FINE(MPI_File_read_at_all(file, (MPI_Offset)rank * BLOCK, buffer, BLOCK * TURNS, MPI_BYTE, MPI_STATUS_IGNORE));
    for (int i = 0; i < BLOCK * TURNS; i++)
        EXPECT(buffer[i] == byte_at((long long)rank * BLOCK + i, seed));
    free(buffer);
}

static long long bytes_of_all(void)
{
    return ((long long)BLOCK * TURNS + LARGE) * ranks;
}

static void write_file(const char *path, int seed)
{
    MPI_File file = open_file(MPI_COMM_WORLD, path, AMODE_NEW);

    write_all_ways(file, seed);
    FINE(MPI_File_close(&file));
}

/* ---- children ---------------------------------------------------------------------------------------------------- */

static void at_exit_of_child(void)
{
    static const char text[] = "gone\n";

    if (write(STDERR_FILENO, text, 0) != 0)
        _exit(3);
}

/* A child that leaves by exit(), with everything it inherited; one by popen; one by system. The file is open
 * meanwhile. */
static void forks(void)
{
    char path[PATH_BYTES], own[PATH_BYTES], name[40], line[40] = "";
    MPI_File file;
    FILE *pipe;
    pid_t child;
    int status = -1;

    start_anew(path_of("file", path));
    snprintf(name, sizeof name, "child.%d", rank);
    path_of(name, own);
    file = open_file(MPI_COMM_WORLD, path, AMODE_NEW);
    write_all_ways(file, 1);
    fflush(stdout);
    child = fork();
    if (child == 0) {
        FILE *log = fopen(own, "w");

        atexit(at_exit_of_child);
        fputs("child\n", log);
        exit(fclose(log) == 0 ? 0 : 1); /* not _exit: handlers and destructors run */
    }
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    EXPECT(file_bytes(own) == 6);
    pipe = popen("echo piped", "r");
    EXPECT(pipe != NULL && fgets(line, sizeof line, pipe) != NULL && strcmp(line, "piped\n") == 0);
    if (pipe != NULL)
        pclose(pipe);
    EXPECT(system("exit 7") == 7 << 8);
    write_all_ways(file, 2);
    FINE(MPI_File_close(&file));
    expect_file(path, bytes_of_all(), 2);
}

/* ---- signals ----------------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t ticks;

static void tick(int signal_number)
{
    (void)signal_number;
    ticks++;
}

static void beat(int microseconds)
{
    struct sigaction action;
    struct itimerval timer = {{0, microseconds}, {0, microseconds}};

    memset(&action, 0, sizeof action);
    action.sa_handler = tick;          /* without SA_RESTART: system calls end with EINTR */
    sigaction(SIGALRM, &action, NULL); /* before the timer: its first signal would end the process */
    setitimer(ITIMER_REAL, &timer, NULL);
}

/* A profiler's timer, 2,000 times a second, through opens, accesses of every kind and a reservation of 64 MiB. */
static void interrupted(void)
{
    const MPI_Offset large = (MPI_Offset)64 << 20;
    char path[PATH_BYTES];
    MPI_Offset size = 0;
    MPI_File file;

    start_anew(path_of("file", path));
    beat(500);
    for (int i = 0; i < 3; i++)
        write_file(path, i);
    file = open_file(MPI_COMM_WORLD, path, MPI_MODE_RDWR);
    FINE(MPI_File_preallocate(file, large));
    FINE(MPI_File_get_size(file, &size));
    EXPECT(size == large);
    MPI_File_sync(file); /* Open MPI's fails now and then, for no reason */
    FINE(MPI_File_set_size(file, bytes_of_all()));
    FINE(MPI_File_close(&file));
    beat(0);
    EXPECT(ticks > 0);
    expect_file(path, bytes_of_all(), 2);
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

static int lowest_free(void)
{
    const int fd = open("/dev/null", O_RDONLY);

    close(fd);
    return fd;
}

/* Hardly any descriptor left: a file that cannot be opened says so everywhere; one that can be opened works. */
static void few_descriptors(void)
{
    char path[PATH_BYTES];
    struct rlimit old, low;

    start_anew(path_of("file", path));
    write_file(path, 0);
    getrlimit(RLIMIT_NOFILE, &old);
    for (int more = 4; more >= 0; more--) {
        MPI_File file = MPI_FILE_NULL;
        int code, all;

        low = old;
        low.rlim_cur = (rlim_t)(lowest_free() + more);
        setrlimit(RLIMIT_NOFILE, &low);
        code = MPI_File_open(MPI_COMM_WORLD, path, AMODE_NEW, MPI_INFO_NULL, &file);
        all = code == MPI_SUCCESS;
        MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        if (all) {
            write_all_ways(file, more);
            FINE(MPI_File_close(&file));
        }
        setrlimit(RLIMIT_NOFILE, &old);
        if (all)
            expect_file(path, bytes_of_all(), more);
    }
}

/* Real-time codes lock what they have and what they will have. */
static void locked_memory(void)
{
    char path[PATH_BYTES];

    start_anew(path_of("file", path));
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
        return;
    write_file(path, 3);
    munlockall();
    expect_file(path, bytes_of_all(), 3);
}

/* ---- descriptors ------------------------------------------------------------------------------------------------- */

/* stdin and stderr are closed, as daemons and job scripts do; what the program then says on stderr must not be in
 * the file. */
static void closed_streams(void)
{
    static const char text[] = "a message that belongs nowhere\n";
    const int in = dup(STDIN_FILENO), err = dup(STDERR_FILENO);
    char path[PATH_BYTES];
    MPI_File file;

    start_anew(path_of("file", path));
    close(STDIN_FILENO);
    close(STDERR_FILENO);
    file = open_file(MPI_COMM_WORLD, path, AMODE_NEW);
    if (write(STDERR_FILENO, text, sizeof text) > 0)
        differs("stderr is a file of somebody else's");
    write_all_ways(file, 4);
    FINE(MPI_File_close(&file));
    if (in >= 0)
        dup2(in, STDIN_FILENO), close(in);
    if (err >= 0)
        dup2(err, STDERR_FILENO), close(err);
    expect_file(path, bytes_of_all(), 4);
}

static void bare_environment(void)
{
    extern char **environ;
    char **kept = environ, *nothing[] = {NULL}, path[PATH_BYTES];
    const mode_t mask = umask(0777);

    start_anew(path_of("file", path));
    environ = nothing;
    write_file(path, 5);
    environ = kept;
    umask(mask);
    if (rank == 0)
        chmod(path, 0644);
    expect_file(path, bytes_of_all(), 5);
}

/* ---- memory and arithmetic --------------------------------------------------------------------------------------- */

/* Buffers that may only be read, of a mapped file; and results that go straight into another mapped file. */
static void mapped_buffers(void)
{
    char path[PATH_BYTES], from[PATH_BYTES], name[40];
    unsigned char *source, data[LARGE];
    MPI_Datatype memory, view = turns_type(BLOCK, ranks);
    MPI_File file;
    FILE *made;
    int fd;

    start_anew(path_of("file", path));
    snprintf(name, sizeof name, "from.%d", rank);
    made = fopen(path_of(name, from), "w+b");
    fill_turns(data, BLOCK, TURNS, rank, ranks, 6);
    EXPECT(made != NULL && fwrite(data, 1, LARGE, made) == LARGE && fclose(made) == 0);
    fd = open(from, O_RDWR);
    source = mmap(NULL, LARGE, PROT_READ, MAP_SHARED, fd, 0);
    MPI_Type_vector(TURNS, BLOCK, BLOCK, MPI_BYTE, &memory);
    MPI_Type_commit(&memory);
    file = open_file(MPI_COMM_WORLD, path, AMODE_NEW);
    FINE(MPI_File_set_view(file, (MPI_Offset)rank * BLOCK, MPI_BYTE, view, "native", MPI_INFO_NULL));
    FINE(MPI_File_write_at_all(file, 0, source, 1, memory, MPI_STATUS_IGNORE));
    FINE(MPI_File_write_at(file, 0, source, 1, memory, MPI_STATUS_IGNORE));
    munmap(source, LARGE);
    source = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    memset(source, 0, LARGE);
    FINE(MPI_File_read_at_all(file, 0, source, 1, memory, MPI_STATUS_IGNORE));
    EXPECT(memcmp(source, data, BLOCK * TURNS) == 0);
    munmap(source, LARGE);
    close(fd);
    MPI_Type_free(&memory);
    MPI_Type_free(&view);
    FINE(MPI_File_close(&file));
    expect_file(path, (long long)BLOCK * TURNS * ranks, 6);
}

/* -ffpe-trap=invalid,zero,overflow of Fortran: any division by zero, anywhere, ends the program. */
static void trapped_arithmetic(void)
{
    char path[PATH_BYTES];

    start_anew(path_of("file", path));
    feclearexcept(FE_ALL_EXCEPT);
    feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
    write_file(path, 7);
    write_file(path, 8);
    fedisableexcept(FE_ALL_EXCEPT);
    expect_file(path, bytes_of_all(), 8);
}

/* ---- others ------------------------------------------------------------------------------------------------------ */

/* A process without MPI makes the file larger and smaller all the time; the ranks read as much as is there. */
static void shrinking(void)
{
    char path[PATH_BYTES];
    unsigned char *buffer = malloc(LARGE);
    MPI_Datatype view = turns_type(BLOCK, ranks);
    MPI_Status status;
    MPI_File file;
    pid_t child = -1;

    start_anew(path_of("file", path));
    write_file(path, 9);
    file = open_file(MPI_COMM_WORLD, path, MPI_MODE_RDONLY);
    FINE(MPI_File_set_view(file, (MPI_Offset)rank * BLOCK, MPI_BYTE, view, "native", MPI_INFO_NULL));
    MPI_Type_free(&view);
    if (rank == 0 && (child = fork()) == 0) {
        for (;;)
            if (truncate(path, 1000) != 0 || truncate(path, BLOCK * TURNS * ranks) != 0)
                _exit(1);
    }
    for (int i = 0; i < 60; i++) {
        int count = -1;

        FINE(MPI_File_read_at_all(file, 0, buffer, BLOCK * TURNS, MPI_BYTE, &status));
        MPI_Get_count(&status, MPI_BYTE, &count);
        EXPECT(count >= 0 && count <= BLOCK * TURNS);
        FINE(MPI_File_read_at(file, 0, buffer, BLOCK * TURNS, MPI_BYTE, &status));
    }
    if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    free(buffer);
    FINE(MPI_File_close(&file));
}

const stranger process_cases[] = {
    {"forks", 1, forks},
    {"interrupted", 1, interrupted},
    {"few_descriptors", 1, few_descriptors},
    {"closed_streams", 1, closed_streams},
    {"bare_environment", 1, bare_environment},
    {"mapped_buffers", 1, mapped_buffers},
    {"trapped_arithmetic", 1, trapped_arithmetic},
    {"shrinking", 1, shrinking},
    {"locked_memory", 1, locked_memory},
    {NULL, 0, NULL},
};
