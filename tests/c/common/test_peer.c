/*
 * test_peer.c - a process that runs, that is dead with and without its parent's wait, and that has another's number.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "mpiox_peer.h"

int main(void)
{
    mpiox_peer *peer = mmap(NULL, sizeof *peer, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    mpiox_peer self = {0};
    int ready[2];
    char word;

    CHECK(pipe(ready) == 0);
    CHECK(!mpiox_peer_has_died(peer)); /* nobody yet */
    const pid_t child = fork();
    if (child == 0) {
        mpiox_peer_introduce(peer);
        CHECK(write(ready[1], "r", 1) == 1);
        for (;;)
            pause();
    }
    CHECK(read(ready[0], &word, 1) == 1);
    CHECK(!mpiox_peer_has_died(peer));
    peer->began++; /* the process with this number is another one */
    CHECK(mpiox_peer_has_died(peer));
    peer->spaces++; /* it is in another namespace */
    CHECK(!mpiox_peer_has_died(peer));
    peer->spaces--;
    peer->began--;
    kill(child, SIGKILL);
    CHECK(waitid(P_PID, (id_t)child, &(siginfo_t){0}, WEXITED | WNOWAIT) == 0); /* dead, and there still */
    CHECK(mpiox_peer_has_died(peer));
    CHECK(waitpid(child, NULL, 0) == child);
    CHECK(mpiox_peer_has_died(peer));

    mpiox_peer_introduce(&self);
    CHECK(!mpiox_peer_has_died(&self));
    CHECK_EQUAL(self.began, mpiox_peer_began(getpid()));
    CHECK_EQUAL(mpiox_peer_began(child), 0);
    return check_exit();
}
