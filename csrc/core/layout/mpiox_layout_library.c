/*
 * mpiox_layout_library.c - functions of libraries that are opened if they are installed, see the header.
 *
 * If the program is linked with the library it has the function already; that one is used, so that there is only one.
 */
#include "mpiox_layout_library.h"

#include <dlfcn.h>
#include <stddef.h>

void *mpiox_layout_library_function(const char *const *libraries, const char *function)
{
    void *found = dlsym(RTLD_DEFAULT, function);
    for (int i = 0; found == NULL && libraries[i] != NULL; i++) {
        void *library = dlopen(libraries[i], RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
        if (library != NULL)
            found = dlsym(library, function);
    }
    return found;
}
