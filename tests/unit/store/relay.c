/* relay.c — see relay.h. */
#include "relay.h"
#include <assert.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PAIRS = 16, ROOM = 1 << 16 };

struct pair {
    int client, server;
    int is_cut; /* the answer to a commit is waited for, and kept */
};

static struct sockaddr_un name_of(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};

    assert(strlen(path) < sizeof name.sun_path);
    strcpy(name.sun_path, path);
    return name;
}

static void pair_close(struct pair *pair)
{
    close(pair->client);
    close(pair->server);
    pair->client = pair->server = -1;
}

static void pair_open(struct relay *relay, struct pair *pair)
{
    struct sockaddr_un name = name_of(relay->target);
    int failed;

    *pair = (struct pair){accept(relay->listener, NULL, NULL), socket(AF_UNIX, SOCK_STREAM, 0), 0};
    assert(pair->client >= 0 && pair->server >= 0);
    failed = connect(pair->server, (struct sockaddr *)&name, sizeof name);
    assert(failed == 0);
    (void)failed;
}

static int send_all(int to, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t sent = send(to, bytes, count, MSG_NOSIGNAL);
        if (sent <= 0)
            return -1;
        bytes += sent;
        count -= (size_t)sent;
    }
    return 0;
}

/* One piece from one side to the other. */
static void pair_move(struct relay *relay, struct pair *pair, int is_from_client)
{
    static char bytes[ROOM];
    int from = is_from_client ? pair->client : pair->server;
    ssize_t count = recv(from, bytes, sizeof bytes, 0);
    int has_commit = count > 0 && memmem(bytes, (size_t)count, "COMMIT", 6) != NULL;
    int cut = atomic_load(&relay->cut);

    if (is_from_client && has_commit && cut != RELAY_WHOLE) {
        atomic_store(&relay->cut, RELAY_WHOLE);
        if (cut == RELAY_CUT_BEFORE)
            count = 0;
        pair->is_cut = cut == RELAY_CUT_AFTER;
    }
    if (count <= 0 || (!is_from_client && pair->is_cut && has_commit))
        pair_close(pair);
    else if (is_from_client || !pair->is_cut)
        if (send_all(is_from_client ? pair->server : pair->client, bytes, (size_t)count) < 0)
            pair_close(pair);
}

static void relay_round(struct relay *relay, struct pair *pairs, const struct pollfd *polled)
{
    for (int i = 0; i < PAIRS; i++) {
        if (pairs[i].client >= 0 && polled[2 + 2 * i].revents)
            pair_move(relay, &pairs[i], 1);
        else if (pairs[i].client >= 0 && polled[3 + 2 * i].revents)
            pair_move(relay, &pairs[i], 0);
    }
    if (!polled[1].revents)
        return;
    for (int i = 0; i < PAIRS; i++)
        if (pairs[i].client < 0) {
            pair_open(relay, &pairs[i]);
            return;
        }
    assert(false && "room for one more connection");
}

static void *relay_run(void *argument)
{
    struct relay *relay = argument;
    struct pair pairs[PAIRS];
    struct pollfd polled[2 + 2 * PAIRS];

    for (int i = 0; i < PAIRS; i++)
        pairs[i] = (struct pair){-1, -1, 0};
    for (;;) {
        polled[0] = (struct pollfd){.fd = relay->stop[0], .events = POLLIN};
        polled[1] = (struct pollfd){.fd = relay->listener, .events = POLLIN};
        for (int i = 0; i < PAIRS; i++) {
            polled[2 + 2 * i] = (struct pollfd){.fd = pairs[i].client, .events = POLLIN};
            polled[3 + 2 * i] = (struct pollfd){.fd = pairs[i].server, .events = POLLIN};
        }
        poll(polled, 2 + 2 * PAIRS, -1);
        if (polled[0].revents)
            break;
        relay_round(relay, pairs, polled);
    }
    for (int i = 0; i < PAIRS; i++)
        if (pairs[i].client >= 0)
            pair_close(&pairs[i]);
    return NULL;
}

void relay_start(struct relay *relay, const char *target)
{
    struct sockaddr_un name;
    char path[100];
    int failed;

    *relay = (struct relay){.directory = "/tmp/test-relay-XXXXXX", .target = strdup(target)};
    if (!mkdtemp(relay->directory) || pipe(relay->stop) < 0)
        abort();
    snprintf(path, sizeof path, "%s/.s.PGSQL.5432", relay->directory);
    name = name_of(path);
    relay->listener = socket(AF_UNIX, SOCK_STREAM, 0);
    failed = bind(relay->listener, (struct sockaddr *)&name, sizeof name) < 0 ||
             listen(relay->listener, PAIRS) < 0 ||
             pthread_create(&relay->thread, NULL, relay_run, relay) != 0;
    assert(!failed);
    (void)failed;
}

void relay_arm(struct relay *relay, enum relay_cut cut)
{
    atomic_store(&relay->cut, cut);
}

void relay_stop(struct relay *relay)
{
    char path[100];

    close(relay->stop[1]);
    pthread_join(relay->thread, NULL);
    close(relay->stop[0]);
    close(relay->listener);
    snprintf(path, sizeof path, "%s/.s.PGSQL.5432", relay->directory);
    unlink(path);
    rmdir(relay->directory);
    free((char *)relay->target);
}
