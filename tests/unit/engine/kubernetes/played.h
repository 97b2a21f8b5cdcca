/* played.h — an API server that a test plays, on this machine's loopback. */
#ifndef TEST_KUBERNETES_PLAYED_H
#define TEST_KUBERNETES_PLAYED_H
#include <stddef.h>

#include "engine/kubernetes/client.h"
#include "kube/access.h"

enum {
    PLAYED_LIMIT_S = 30, /* only ends a test that has failed */
    PLAYED_REQUEST_MAX = 4096,
};

/* The access points into it: it stays where it is while it is open. */
struct played {
    int listener;
    char server[64];
    struct kube_access access;
};

/* Access to a server without credentials. The URL is borrowed. */
struct kube_access access_to(const char *server);

/* What needs no notice of how its server does. */
extern const struct kube_watcher UNWATCHED;

/* backlog: how many connections wait to be taken. 0; or -1, as a cmocka setup returns it. */
int played_open(struct played *played, int backlog);
int played_close(struct played *played);

/* The next connection, its request read up to these words; the caller closes it. */
int played_take(const struct played *played, const char *end, char request[PLAYED_REQUEST_MAX]);

#endif
