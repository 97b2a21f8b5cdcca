/* snapshot.h — how the cluster is used, for readers on other threads: made between the rounds of
 * the core thread, in pieces.
 *
 * Private to server: the core thread's. A piece is done after each round, and as long as somebody
 * waits no round waits for mail. So what has changed is copied while others are served, and what
 * changes meanwhile is copied again; the last piece finds nothing more, and everything that the
 * reader gets is of that instant. Nothing of the core depends on it. The states stand in
 * docs/rfc/0016-gangs-in-steps.md.
 */
#ifndef SERVER_SNAPSHOT_H
#define SERVER_SNAPSHOT_H

struct server;
struct server_mail;

enum {
    SNAPSHOT_CELLS = 4096, /* of a piece, … */
    SNAPSHOT_TASKS = 4096, /* … on nodes, of which jobs they are, … */
    SNAPSHOT_PIECES = 64 /* … of so many: then they are twice as large, so that there is an end */
};

struct snapshots { /* those who wait, in their order: the first one's is being made */
    struct server_mail *first, **last;
    unsigned pieces; /* of the first one's */
};

void snapshots_init(struct snapshots *snapshots);
/* A mail that asks for one; it is freed when it has its answer. */
void snapshots_add(struct snapshots *snapshots, struct server_mail *mail);
/* One piece, if anybody waits; there must be a core. */
void snapshots_go_on(struct server *server);
/* All who wait: ERR_UNAVAILABLE with this text. */
void snapshots_refuse(struct snapshots *snapshots, const char *text);

#endif
