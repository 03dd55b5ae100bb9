/*
 * mpiox_message_sends.h - messages under way, their tags, and failures of the transport. Local unless marked otherwise.
 */
#ifndef MPIOX_MESSAGE_SENDS_H
#define MPIOX_MESSAGE_SENDS_H

#include "mpiox_messages.h"
#include "mpiox_parts.h"

/* Room for one more request of a step, MPI_REQUEST_NULL; `copy` is freed with it. Ends the job without memory. */
MPI_Request *mpiox_sends_add(mpiox_messages *m, mpiox_sends *sends, char *copy);
/* The step has no more. */
void mpiox_sends_complete(mpiox_sends *sends);
/* Have all of a complete step gone (or come)? The first time that they have, `word` (NULL: none) is added to. */
bool mpiox_sends_test(mpiox_messages *m, mpiox_sends *sends, mpiox_futex *word);
/* Wait until they have, as mpiox_sends_test(). */
void mpiox_sends_wait(mpiox_messages *m, mpiox_sends *sends, mpiox_futex *word);

void mpiox_messages_fail(mpiox_messages *m, int code, int64_t bytes, const char *what);
/* Message tags: of written data, of requests to read, of replies to them. */
int mpiox_messages_tag_data(int64_t number);
int mpiox_messages_tag_reply(int64_t number);
/* Wait until the word has reached `target`; as which part of the time that counts. */
void mpiox_messages_reach(mpiox_messages *m, mpiox_futex *word, uint32_t target, mpiox_part part);

#endif
