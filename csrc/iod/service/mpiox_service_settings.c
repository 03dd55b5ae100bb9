/* mpiox_service_settings.c - see mpiox_service_settings.h. */
#include "mpiox_service_settings.h"

#include <stdio.h>
#include <string.h>

enum { VALUE_BYTES = 512 };

/* Hints that are settled when the service starts. The level, the bypass and write-behind are each file's own. */
static const char *const settled[] = {"mpiox_delegates",          "mpiox_delegate_mode",    "mpiox_delegate_cache",
                                      "mpiox_delegate_cache_dir", "mpiox_delegate_page",    "mpiox_delegate_threads",
                                      "mpiox_delegate_prefetch",  "mpiox_delegate_hosts",   "mpiox_delegate_interface",
                                      "mpiox_delegate_scheduler", "mpiox_delegate_quantum", "mpiox_delegate_time_slice",
                                      "mpiox_delegate_patience"};

enum { SETTLED = (int)(sizeof settled / sizeof settled[0]), FIRST_OF_ORDER = SETTLED - 4 /* the scheduler's */ };

/* Does mpiox_service_settings_to_info() return this hint? PnetCDF opens a file again with the hints that are in force.
 */
static bool is_in_info(const mpiox_service *service, const mpiox_hints *hints, const char *name, const char *value)
{
    return (strcmp(name, "mpiox_delegate_mode") == 0 && strcmp(value, mpiox_service_mode_name(service->mode)) == 0) ||
           (strcmp(name, "mpiox_delegate_page") == 0 && hints->delegate_page == service->page_bytes) ||
           (strcmp(name, "mpiox_delegate_cache") == 0 && hints->delegate_cache == service->cap_bytes);
}

static bool differs(const mpiox_service *service, const mpiox_hints *hints, const char *name, char *value)
{
    const int index = mpiox_hints_find(name);
    const mpiox_hint_spec *spec = mpiox_hints_spec(index);
    char asked[VALUE_BYTES];

    if (spec == NULL || hints->source[index] == MPIOX_HINT_DEFAULT)
        return false;
    mpiox_hint_format(spec, hints, value, VALUE_BYTES);
    mpiox_hint_format(spec, &service->hints, asked, VALUE_BYTES);
    return strcmp(value, asked) != 0 && !is_in_info(service, hints, name, value);
}

bool mpiox_service_settings_ignored(const mpiox_service *service, const mpiox_hints *hints, char *text, size_t bytes)
{
    char value[VALUE_BYTES];
    size_t used = 0;

    for (int i = 0; i < SETTLED; i++) {
        if (!differs(service, hints, settled[i], value))
            continue;
        if (used < bytes)
            used += (size_t)snprintf(text + used, bytes - used, "%s%s=%s",
                                     used == 0 ? "not in force, since the delegates had been started: " : ", ",
                                     settled[i], value);
    }
    return used > 0;
}

void mpiox_service_settings_to_info(const mpiox_service *service, MPI_Info info)
{
    PMPI_Info_set(info, "mpiox_delegate_mode", mpiox_service_mode_name(service->mode));
    mpiox_hints_put_number(info, "mpiox_delegate_cache", service->cap_bytes);
    mpiox_hints_put_number(info, "mpiox_delegate_page", service->page_bytes);
    mpiox_hints_put_number(info, "mpiox_delegate_threads", service->hints.delegate_threads);
    mpiox_hints_put_number(info, "mpiox_delegate_prefetch", service->hints.delegate_prefetch);
    for (int i = FIRST_OF_ORDER; i < SETTLED; i++) {
        char value[VALUE_BYTES];

        mpiox_hint_format(mpiox_hints_spec(mpiox_hints_find(settled[i])), &service->hints, value, VALUE_BYTES);
        PMPI_Info_set(info, settled[i], value);
    }
    if (service->hints.delegate_cache_dir[0] != '\0')
        PMPI_Info_set(info, "mpiox_delegate_cache_dir", service->hints.delegate_cache_dir);
    if (service->hints.delegate_hosts[0] != '\0')
        PMPI_Info_set(info, "mpiox_delegate_hosts", service->hints.delegate_hosts);
    if (service->hints.delegate_interface[0] != '\0')
        PMPI_Info_set(info, "mpiox_delegate_interface", service->hints.delegate_interface);
}
