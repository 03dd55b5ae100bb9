/*
 * stepped.c - how many instructions and system calls a program makes between signals that it raises itself.
 *
 * Problem.   Times of a call that takes a microsecond say little on a machine that has other work; instructions and
 *            system calls are the same in every run. Hardware counters are missing in virtual machines, and tools that
 *            count otherwise are not everywhere.
 * Algorithm. The program runs under ptrace; from its first SIGUSR2 to its second one, from the third to the fourth
 *            and so on its first thread is stepped, instruction by instruction. None of these signals is delivered.
 *            Other threads and processes are left alone. Instructions of the kernel's own page, [vdso], do not count:
 *            reading the clock there goes round again whenever the kernel sets it meanwhile.
 * Output.    On descriptor 3, or on standard error where there is none: a line `instructions N` for each interval,
 *            then a line `system_call NUMBER TIMES` for each number met. Exit status: the program's; 77 when it cannot
 *            be stepped here.
 *
 *   cc -o stepped stepped.c && ./stepped PROGRAM ARGUMENT...
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CANNOT = 77, NUMBERS = 1024 };

static long long instructions, calls[NUMBERS];
static unsigned long long vdso_begin, vdso_end;
static FILE *out;

static void find_vdso(pid_t pid)
{
    char path[64], line[512];

    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
        if (strstr(line, "[vdso]") != NULL)
            sscanf(line, "%llx-%llx", &vdso_begin, &vdso_end);
    if (maps != NULL)
        fclose(maps);
}

#if defined __x86_64__
static void count_next(pid_t pid)
{
    struct user_regs_struct registers;

    if (ptrace(PTRACE_GETREGS, pid, NULL, &registers) != 0)
        return;
    instructions += registers.rip < vdso_begin || registers.rip >= vdso_end;
    errno = 0;
    const long word = ptrace(PTRACE_PEEKTEXT, pid, (void *)registers.rip, NULL);
    if (errno == 0 && (word & 0xffff) == 0x050f && registers.rax < NUMBERS) /* a system call comes next */
        calls[registers.rax]++;
}
#else
static void count_next(pid_t pid)
{
    (void)pid;
    fputs("stepped: only x86-64\n", stderr);
    exit(CANNOT);
}
#endif

static void print(void)
{
    for (int i = 0; i < NUMBERS; i++)
        if (calls[i] > 0)
            fprintf(out, "system_call %d %lld\n", i, calls[i]);
    fflush(out);
}

/* From one stop of the program to the next, until it ends. Its exit status. */
static int follow(pid_t pid)
{
    int marks = 0, status, pass_on = 0;

    for (;;) {
        const int stepping = marks % 2 == 1;
        if (stepping)
            count_next(pid);
        if (ptrace(stepping ? PTRACE_SINGLESTEP : PTRACE_CONT, pid, NULL, (void *)(long)pass_on) != 0)
            return CANNOT;
        if (waitpid(pid, &status, 0) != pid)
            return CANNOT;
        if (WIFEXITED(status))
            return WEXITSTATUS(status);
        if (WIFSIGNALED(status))
            return 128 + WTERMSIG(status);
        const int signal = WSTOPSIG(status);
        pass_on = 0;
        if (signal == SIGUSR2 && ++marks % 2 == 0) {
            fprintf(out, "instructions %lld\n", instructions);
            instructions = 0;
        } else if (signal == SIGUSR2)
            find_vdso(pid);
        else if (signal != SIGTRAP)
            pass_on = signal;
    }
}

int main(int argc, char **argv)
{
    int status;

    if (argc < 2)
        return 2;
    const pid_t pid = fork();
    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(CANNOT);
        execvp(argv[1], argv + 1);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return CANNOT;
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    out = fdopen(3, "w");
    out = out != NULL ? out : stderr;
    status = follow(pid);
    print();
    return status;
}
