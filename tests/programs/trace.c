/*
 * trace.c - what tests of the tracer trace: PROGRAM MODE FOLDER [NUMBER]. Each mode is a fixed sequence of calls.
 */
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4 };

static char path[4096], other[4096], inside[4096];
static int number;

static void need(int fine, const char *what)
{
    if (!fine) {
        perror(what);
        exit(3);
    }
}

/* ---- MPI --------------------------------------------------------------------------------------------------------- */

static void nonblocking(MPI_File file, int rank)
{
    int data[8] = {rank}, back[8], flag = 0;
    MPI_Request requests[2];

    MPI_File_iwrite_at(file, 100 + rank * 8, data, 8, MPI_INT, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_File_iread_at(file, 100 + rank * 8, back, 4, MPI_INT, &requests[0]);
    MPI_File_iread_at(file, 104 + rank * 8, back + 4, 2, MPI_INT, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_File_iread_at(file, 100 + rank * 8, back, 1, MPI_INT, &requests[0]);
    while (!flag)
        MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
    need(data[0] == back[0], "nonblocking");
}

static void mpi(void)
{
    int rank, ranks, data[8] = {0}, back[8];
    MPI_Datatype type;
    MPI_Offset size;
    MPI_File file;

    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_write_at_all(file, rank * 32, data, 8, MPI_INT, MPI_STATUS_IGNORE);
    MPI_Type_vector(4, 2, 2 * ranks, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_File_set_view(file, 8, MPI_INT, type, "native", MPI_INFO_NULL);
    MPI_File_seek(file, 2, MPI_SEEK_SET);
    MPI_File_write_all(file, data, 4, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_sync(file);
    MPI_File_read_at(file, 1, back, 2, MPI_INT, MPI_STATUS_IGNORE);
    nonblocking(file, rank);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_get_size(file, &size);
    MPI_File_close(&file);
    MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    MPI_File_close(&file);
    MPI_Type_free(&type);
    MPI_Finalize();
}

/* More requests than a list of fixed length has room for; a look at one that completes nothing; one that is freed. */
static void many_requests(void)
{
    enum { MANY = 100 };
    static char data[MANY];
    MPI_Request requests[MANY];
    MPI_File file;
    int flag = 0;

    MPI_Init(NULL, NULL);
    MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    for (int i = 0; i < MANY; i++)
        MPI_File_iwrite_at(file, i, data + i, 1, MPI_BYTE, &requests[i]);
    while (!flag)
        MPI_Request_get_status(requests[7], &flag, MPI_STATUS_IGNORE);
    MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
    MPI_File_close(&file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
}

static sigjmp_buf back_here;
static int on_other_stack;

static void write_to(const char *name)
{
    const int fd = open(name, O_RDWR | O_CREAT, 0600);
    need(write(fd, "x", 1) == 1 && close(fd) == 0, "write");
}

static void jump_out(int signal)
{
    (void)signal;
    write_to(inside); /* of the call, still */
    siglongjmp(back_here, 1);
}

static void jump_of_file(MPI_File *file, int *code, ...)
{
    (void)file;
    (void)code;
    on_other_stack ? raise(SIGUSR1) : jump_out(0);
}

/* An error handler leaves MPI_File_read_at by a jump; what comes then is not inside of it. */
static void *jumping(void *context)
{
    MPI_Errhandler handler;
    MPI_File file;
    char byte;

    (void)context;
    MPI_Init(NULL, NULL);
    MPI_File_create_errhandler(jump_of_file, &handler);
    MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_set_errhandler(file, handler);
    if (sigsetjmp(back_here, 1) == 0) {
        MPI_File_read_at(file, 0, &byte, -1, MPI_BYTE, MPI_STATUS_IGNORE);
        need(0, "the error handler");
    }
    write_to(other);
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    MPI_File_close(&file);
    MPI_Errhandler_free(&handler);
    MPI_Finalize();
    return NULL;
}

/* On the stack of main() or of a thread; the handler of the signal has one above it. */
static void jumps(const char *where)
{
    char memory[1 << 16];
    const stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    struct sigaction action = {.sa_handler = jump_out, .sa_flags = SA_ONSTACK};
    pthread_t thread;

    on_other_stack = strcmp(where, "signal") == 0;
    need(sigaltstack(&stack, NULL) == 0 && sigaction(SIGUSR1, &action, NULL) == 0, "sigaltstack");
    if (strcmp(where, "thread") != 0)
        jumping(NULL);
    else
        need(pthread_create(&thread, NULL, jumping, NULL) == 0 && pthread_join(thread, NULL) == 0, "a thread");
}

/* ---- POSIX and stdio --------------------------------------------------------------------------------------------- */

static void posix(void)
{
    struct iovec pieces[2] = {{"abc", 3}, {"de", 2}};
    struct stat status;
    char bytes[64];

    need(open(other, O_RDONLY) < 0, "open what is not there");
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0640);
    need(write(fd, "0123456789", 10) == 10, "write");
    need(writev(fd, pieces, 2) == 5, "writev");
    need(lseek(fd, 2, SEEK_SET) == 2, "lseek");
    need(read(fd, bytes, 4) == 4, "read");
    int copy = dup(fd);
    need(read(copy, bytes, 60) == 9, "read from the copy");
    need(pread(fd, bytes, 8, 3) == 8, "pread");
    need(pwrite(fd, "x", 1, 100) == 1, "pwrite");
    need(close(copy) == 0 && fstat(fd, &status) == 0, "fstat");
    void *mapped = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    need(munmap(mapped, 4096) == 0 && ftruncate(fd, 50) == 0 && fsync(fd) == 0 && close(fd) == 0, "end");
    fd = open(path, O_WRONLY | O_APPEND);
    need(write(fd, "end", 3) == 3 && close(fd) == 0, "append");
    need(rename(path, other) == 0 && stat(other, &status) == 0 && unlink(other) == 0, "names");
}

static void standard(void)
{
    char text[64];
    FILE *file = fopen(path, "w+");

    need(file != NULL && fwrite("0123456789", 2, 5, file) == 5, "fwrite");
    need(fputs("line\n", file) >= 0 && fprintf(file, "%d\n", 1234) == 5, "text");
    need(fseek(file, 10, SEEK_SET) == 0 && fgets(text, sizeof text, file) != NULL, "fgets");
    need(fread(text, 1, 3, file) == 3 && fgetc(file) == '4', "fgetc");
    char *line = NULL;
    size_t room = 0;
    int first = 0, second = 0;
    rewind(file);
    need(fscanf(file, "%2d%3d", &first, &second) == 2 && first == 1 && second == 234, "fscanf");
    need(getline(&line, &room, file) == 10 && strcmp(line, "56789line\n") == 0, "getline");
    free(line);
    need(fflush(file) == 0 && fclose(file) == 0, "end");
}

/* ---- processes and threads --------------------------------------------------------------------------------------- */

static void write_bytes(int fd, int count)
{
    for (int i = 0; i < count; i++)
        need(pwrite(fd, "x", 1, i) == 1, "pwrite");
}

static void *in_thread(void *context)
{
    char name[4200];

    snprintf(name, sizeof name, "%s.%d", path, (int)(intptr_t)context);
    const int fd = open(name, O_RDWR | O_CREAT, 0600);
    write_bytes(fd, number);
    close(fd);
    return NULL;
}

static void threads(void)
{
    pthread_t thread[THREADS];

    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, in_thread, (void *)(intptr_t)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
}

static void bytes(int how)
{
    const int fd = open(path, O_RDWR | O_CREAT, 0600);

    write_bytes(fd, number);
    if (how != 0)
        kill(getpid(), how);
    close(fd);
    puts("done");
}

/* Be in a call until somebody ends the process: a read from an empty pipe, a write to a full one, opening one alone. */
static void blocked(const char *how)
{
    char block[4096] = "";
    const int plain = open(other, O_RDWR | O_CREAT, 0600);

    need(plain >= 0 && write(plain, "x", 1) == 1 && mkfifo(path, 0600) == 0, "files");
    if (strcmp(how, "mpi") == 0) {
        MPI_File file;
        MPI_Init(NULL, NULL);
        puts("ready");
        fflush(stdout);
        MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    }
    const int fd = strcmp(how, "open") == 0 ? -1 : open(path, O_RDWR | O_NONBLOCK);
    while (fd >= 0 && strcmp(how, "write") == 0 && write(fd, block, sizeof block) > 0)
        ;
    need(fd < 0 || fcntl(fd, F_SETFL, O_RDWR) == 0, "fcntl");
    puts("ready");
    fflush(stdout);
    if (fd < 0)
        (void)!open(path, O_RDONLY);
    else if (strcmp(how, "write") == 0)
        (void)!write(fd, block, sizeof block);
    else
        (void)!read(fd, block, sizeof block);
}

static void forking(void)
{
    const int fd = open(path, O_RDWR | O_CREAT, 0600);

    need(write(fd, "ab", 2) == 2, "write");
    const pid_t child = fork();
    if (child == 0) {
        need(write(fd, "cde", 3) == 3, "write of the child");
        _exit(0);
    }
    waitpid(child, NULL, 0);
    need(write(fd, "f", 1) == 1 && close(fd) == 0, "write of the parent");
    execl("/bin/true", "true", (char *)NULL);
}

static void leave(int signal)
{
    (void)signal;
    _exit(7);
}

static void *rest(void *nothing)
{
    for (;;)
        pause();
    return nothing;
}

/* Beside a second thread, a signal handler ends the process in the middle of its calls, after `number` microseconds. */
static void interrupted(void)
{
    const struct itimerval after = {.it_value.tv_usec = number};
    const int fd = open(path, O_RDWR | O_CREAT, 0600);
    pthread_t second;

    need(pthread_create(&second, NULL, rest, NULL) == 0, "pthread_create");
    signal(SIGALRM, leave);
    setitimer(ITIMER_REAL, &after, NULL);
    for (int i = 0;; i++)
        need(pwrite(fd, "x", 1, i) == 1, "pwrite");
}

/* ---- what records have no counter for ---------------------------------------------------------------------------- */

enum { PAGE = 4096, PAGES = 16, OFTEN = 10 };

/* OFTEN calls of each kind. */
static void others(void)
{
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    const int fd = open(path, O_CREAT | O_RDWR, 0644), back = open(path, O_RDONLY);
    struct stat found;

    need(fd >= 0 && back >= 0 && ftruncate(fd, PAGES * PAGE) == 0, "open");
    char *at = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    need(at != MAP_FAILED, "mmap");
    for (int k = 0; k < OFTEN; k++) {
        at[k * PAGE] = 1;
        need(msync(at + k * PAGE, PAGE, MS_SYNC) == 0, "msync");
        need(flock(fd, k % 2 == 0 ? LOCK_EX : LOCK_UN) == 0, "flock");
        need(fcntl(fd, F_SETLK, &all) == 0, "fcntl");
        need(lockf(fd, F_TEST, 0) == 0, "lockf");
        need(rename(k % 2 == 0 ? path : other, k % 2 == 0 ? other : path) == 0, "rename");
        need(unlink(inside) != 0, "unlink");
        need(stat(inside, &found) != 0, "stat");
        need(write(back, "", 1) < 0, "write");
    }
    need(munmap(at, PAGES * PAGE) == 0 && unlink(path) == 0, "unlink");
}

/* Ranks that have a file's lock in turn. */
static void locked(void)
{
    MPI_Init(NULL, NULL);
    const int fd = open(other, O_CREAT | O_RDWR, 0644);

    MPI_Barrier(MPI_COMM_WORLD);
    for (int k = 0; k < number; k++) {
        need(flock(fd, LOCK_EX) == 0, "flock");
        usleep(100000);
        need(flock(fd, LOCK_UN) == 0, "flock");
    }
    MPI_Finalize();
}

/* Calls that may write OFTEN bytes below a limit, and no byte beyond: of each kind, one of three fits. */
static void limited(void)
{
    enum { LIMIT = 16 << 20 };
    struct rlimit limit = {LIMIT, RLIM_INFINITY};
    const MPI_Offset places[] = {0, LIMIT, 2 * LIMIT};
    char data[OFTEN] = {0};
    MPI_Request request;
    MPI_File file;
    int rank;

    signal(SIGXFSZ, SIG_IGN);
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    need(setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    for (int k = 0; k < 3; k++) {
        MPI_File_write_at_all(file, places[k] + rank * OFTEN, data, OFTEN, MPI_BYTE, MPI_STATUS_IGNORE);
        MPI_File_write_at(file, places[k] + rank * OFTEN, data, OFTEN, MPI_BYTE, MPI_STATUS_IGNORE);
        MPI_File_iwrite_at(file, places[k] + rank * OFTEN, data, OFTEN, MPI_BYTE, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_File_close(&file);
    MPI_Finalize();
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    const char *mode = argv[1];
    number = argc > 3 ? atoi(argv[3]) : 1000;
    snprintf(path, sizeof path, "%s/data", argv[2]);
    snprintf(other, sizeof other, "%s/other", argv[2]);
    snprintf(inside, sizeof inside, "%s/inside", argv[2]);
    if (strcmp(mode, "mpi") == 0)
        mpi();
    else if (strcmp(mode, "requests") == 0)
        many_requests();
    else if (strcmp(mode, "jump") == 0)
        jumps(argv[3]);
    else if (strcmp(mode, "posix") == 0)
        posix();
    else if (strcmp(mode, "stdio") == 0)
        standard();
    else if (strcmp(mode, "threads") == 0)
        threads();
    else if (strcmp(mode, "block") == 0)
        blocked(argv[3]);
    else if (strcmp(mode, "fork") == 0)
        forking();
    else if (strcmp(mode, "others") == 0)
        others();
    else if (strcmp(mode, "locked") == 0)
        locked();
    else if (strcmp(mode, "limited") == 0)
        limited();
    else if (strcmp(mode, "interrupted") == 0)
        interrupted();
    else
        bytes(strcmp(mode, "kill") == 0 ? SIGKILL : 0);
    return 0;
}
