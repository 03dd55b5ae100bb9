/*
 * old_glob.c FILE - a program that was linked before glibc 2.27: glob() with functions of its own, gl_lstat not set.
 */
#include <dirent.h>
#include <glob.h>
#include <stdio.h>
#include <sys/stat.h>

#if defined __aarch64__
__asm__(".symver glob, glob@GLIBC_2.17");
#else
__asm__(".symver glob, glob@GLIBC_2.2.5");
#endif

static int calls;

static int look(const char *restrict path, struct stat *restrict out)
{
    calls++;
    return stat(path, out);
}

int main(int argc, char **argv)
{
    glob_t found = {.gl_closedir = (void (*)(void *))(void *)closedir,
                    .gl_readdir = (struct dirent * (*)(void *))(void *)readdir,
                    .gl_opendir = (void *(*)(const char *))(void *)opendir,
                    .gl_lstat = NULL,
                    .gl_stat = look};
    const int code = argc == 2 ? glob(argv[1], GLOB_ALTDIRFUNC, NULL, &found) : -1;

    printf("%d %zu %d\n", code, found.gl_pathc, calls > 0);
    return 0;
}
