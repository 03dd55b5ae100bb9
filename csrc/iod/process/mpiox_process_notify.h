/*
 * mpiox_process_notify.h - a delegate's messages to the user.
 *
 * Problem.   A delegate outlives its program for as long as it writes. When that fails, or when the delegate is killed,
 *            the program's standard error may have no reader any more.
 * Algorithm. Every line goes to standard error, and from the delegate's own processes to the system's log as well
 *            (syslog, facility user, priority err, name mpiio-ext-delegate).
 */
#ifndef MPIOX_PROCESS_NOTIFY_H
#define MPIOX_PROCESS_NOTIFY_H

/* This process is a delegate's: from now on its lines go to the system's log, too. */
void mpiox_process_notify_begin(void);
/* One line, without its end. Any thread. */
__attribute__((format(printf, 1, 2))) void mpiox_process_notify(const char *format, ...);

#endif
