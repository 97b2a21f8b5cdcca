/* relay.h — between a client of PostgreSQL and its server: cuts the connection at a commit. */
#ifndef TEST_STORE_RELAY_H
#define TEST_STORE_RELAY_H
#include <pthread.h>
#include <stdatomic.h>

enum relay_cut {
    RELAY_WHOLE,
    RELAY_CUT_BEFORE, /* the server does not get the next COMMIT */
    RELAY_CUT_AFTER,  /* the client does not get the answer to it */
};

struct relay {
    char directory[64]; /* in which a client finds a socket as the server's */
    const char *target; /* the server's socket */
    int listener, stop[2];
    _Atomic int cut; /* enum relay_cut; back to RELAY_WHOLE when it has been done */
    pthread_t thread;
};

void relay_start(struct relay *relay, const char *target);
void relay_arm(struct relay *relay, enum relay_cut cut);
void relay_stop(struct relay *relay);

#endif
