/* mailbox.h — the one way in which threads talk: a bounded queue under a mutex and a condition.
 *
 * Edge. Messages are the sender's structs with a `struct mail` as their first member; the mailbox
 * links them and never allocates. Any number of senders, one receiver. Requests from outside are
 * refused when as many wait as may; what must not be lost (engine events) has a room of its own,
 * and waits when that is full: a flood of the one kind never closes the door to the other.
 */
#ifndef SYS_MAILBOX_H
#define SYS_MAILBOX_H
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

struct mail {
    struct mail *next;
    bool is_request; /* the mailbox's: by mailbox_post */
};

struct mailbox {
    pthread_mutex_t lock;
    pthread_cond_t has_mail, has_room;
    struct mail *first, **last;
    size_t requests, request_room; /* by mailbox_post: they wait, may wait */
    size_t facts, fact_room;       /* by mailbox_post_wait */
    bool is_closed, is_woken;
};

/* How many may wait by mailbox_post, and by mailbox_post_wait. */
void mailbox_init(struct mailbox *mailbox, size_t request_room, size_t fact_room);
void mailbox_release(struct mailbox *mailbox); /* must be empty */

/* ERR_BUSY: as many requests wait as may. ERR_UNAVAILABLE: closed. Then the message is still the
 * caller's. */
int mailbox_post(struct mailbox *mailbox, struct mail *mail, struct err *err);

/* As mailbox_post, but for what must not be lost: when its room is full, waits until there is some.
 * Only ERR_UNAVAILABLE. */
int mailbox_post_wait(struct mailbox *mailbox, struct mail *mail, struct err *err);

/* Everything that is there, oldest first, at most `limit` (0: all). When there is nothing, waits
 * until `deadline_ms` (clock_monotonic_ms; negative: for ever). NULL: time is over, or closed and
 * empty, or woken. */
struct mail *mailbox_take(struct mailbox *mailbox, size_t limit, int64_t deadline_ms);

/* Let a waiting mailbox_take return NULL once. */
void mailbox_wake(struct mailbox *mailbox);

/* No more messages come in; those inside can be taken. */
void mailbox_close(struct mailbox *mailbox);

/* How many wait now, of both kinds, and of those by mailbox_post; any thread. */
size_t mailbox_count(struct mailbox *mailbox);
size_t mailbox_requests(struct mailbox *mailbox);

#endif
