/*
 * large_pages.c - a kernel with pages of 64 KiB, as Arm's may have, pretended to the libraries of mpiio_ext.
 *
 * Preloaded. To the libraries alone sysconf(3) and getpagesize(3) return 64 KiB: an MPI library would lay out memory
 * that the kernel gives it in smaller pages. Of the libraries' calls, a mapping lies at a multiple of 64 KiB, and an
 * offset or address that is none gets EINVAL and a line on standard error. At its end a process prints how many
 * mappings the libraries have made.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

enum { PAGE = 65536 };

static atomic_int maps;

__attribute__((destructor)) static void report(void)
{
    if (maps > 0)
        dprintf(2, "large_pages: %d mappings\n", maps);
}

static int is_ours(const void *caller)
{
    Dl_info of;

    return dladdr(caller, &of) != 0 && of.dli_fname != NULL && strstr(of.dli_fname, "libmpiio_ext") != NULL;
}

static int is_wrong(const void *caller, const char *call, uint64_t number)
{
    if (number % PAGE == 0 || !is_ours(caller))
        return 0;
    dprintf(2, "large_pages: %s at %#llx\n", call, (unsigned long long)number);
    errno = EINVAL;
    return 1;
}

long sysconf(int name)
{
    return name == _SC_PAGESIZE && is_ours(__builtin_return_address(0)) ? PAGE : NEXT(sysconf)(name);
}

int getpagesize(void)
{
    return is_ours(__builtin_return_address(0)) ? PAGE : NEXT(getpagesize)();
}

void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    const void *caller = __builtin_return_address(0);

    if (is_wrong(caller, "mmap of an offset", (uint64_t)offset) || is_wrong(caller, "mmap", (uintptr_t)address))
        return MAP_FAILED;
    if (address != NULL || !is_ours(caller))
        return NEXT(mmap)(address, bytes, protection, flags, fd, offset);
    char *room = NEXT(mmap)(NULL, bytes + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return MAP_FAILED;
    maps++;
    return NEXT(mmap)(room + (PAGE - (uintptr_t)room % PAGE) % PAGE, bytes, protection, flags | MAP_FIXED, fd, offset);
}

void *mmap64(void *, size_t, int, int, int, off_t) __attribute__((alias("mmap")));

#define AT_A_PAGE(name, parameters, arguments)                                                                         \
    int name parameters                                                                                                \
    {                                                                                                                  \
        return is_wrong(__builtin_return_address(0), #name, (uintptr_t)address) ? -1 : NEXT(name) arguments;           \
    }

AT_A_PAGE(munmap, (void *address, size_t bytes), (address, bytes))
AT_A_PAGE(mprotect, (void *address, size_t bytes, int protection), (address, bytes, protection))
AT_A_PAGE(madvise, (void *address, size_t bytes, int advice), (address, bytes, advice))
AT_A_PAGE(msync, (void *address, size_t bytes, int flags), (address, bytes, flags))
