/*
 * refusing.c - run a command to which the kernel refuses a system call, as a container's seccomp profile does.
 *
 * usage: refusing CALL:ERRNO... -- COMMAND [ARGUMENT]...
 *
 *   CALL   io_uring_setup, memfd_create or process_vm_readv
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int number_of(const char *name, size_t length)
{
    static const struct {
        const char *name;
        int number;
    } calls[] = {{"io_uring_setup", SYS_io_uring_setup},
                 {"memfd_create", SYS_memfd_create},
                 {"process_vm_readv", SYS_process_vm_readv}};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (strlen(calls[i].name) == length && strncmp(calls[i].name, name, length) == 0)
            return calls[i].number;
    return -1;
}

static int refuse(const char *word)
{
    const char *colon = strchr(word, ':');
    const int number = colon == NULL ? -1 : number_of(word, (size_t)(colon - word));
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (colon == NULL ? 0 : (unsigned)atoi(colon + 1))),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof filter / sizeof filter[0], .filter = filter};
    if (number < 0) {
        fprintf(stderr, "refusing: %s: no such call\n", word);
        return -1;
    }
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0
               ? 0
               : -1;
}

int main(int argc, char **argv)
{
    int i = 1;
    for (; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (refuse(argv[i]) != 0) {
            perror("refusing: seccomp");
            return 2;
        }
    if (i + 1 >= argc)
        return 2;
    execvp(argv[i + 1], argv + i + 1);
    perror(argv[i + 1]);
    return 127;
}
