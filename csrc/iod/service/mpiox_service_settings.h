/*
 * mpiox_service_settings.h - the hints that the delegates were started with, and later hints.
 *
 * Problem.   A job has one service of delegates. It is started with the hints of the first file; a later file may
 *            request others.
 * Guarantee. Hints that are not in force are reported once on standard error and in the file's statistics;
 *            MPI_File_get_info returns the values in force.
 */
#ifndef MPIOX_SERVICE_SETTINGS_H
#define MPIOX_SERVICE_SETTINGS_H

#include <mpi.h>

#include "mpiox_service.h"
#include "mpiox_service_plan.h"

/* Which hints of a file differ from those that the service was started with, as text. False: none. Local. */
bool mpiox_service_settings_ignored(const mpiox_service *service, const mpiox_hints *hints, char *text, size_t bytes);
/* Put the service's values in force into info. Local. */
void mpiox_service_settings_to_info(const mpiox_service *service, MPI_Info info);

#endif
