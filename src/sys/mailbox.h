/* mailbox.h — the one way in which threads talk: a bounded queue under a mutex and a condition.
 *
 * Edge. Messages are the sender's structs with a `struct mail` as their first member; the mailbox
 * links them and never allocates. Any number of senders, one receiver. Requests from outside may
 * fill `room`; what must not be lost (engine events) may go `reserve` beyond it and then waits.
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
};

struct mailbox {
    pthread_mutex_t lock;
    pthread_cond_t has_mail, has_room;
    struct mail *first, **last;
    size_t count, room, reserve;
    bool is_closed, is_woken;
};

/* `room`: for mailbox_post; `reserve`: beyond it, for mailbox_post_wait. */
void mailbox_init(struct mailbox *mailbox, size_t room, size_t reserve);
void mailbox_release(struct mailbox *mailbox); /* must be empty */

/* ERR_BUSY: full. ERR_UNAVAILABLE: closed. Then the message is still the caller's. */
int mailbox_post(struct mailbox *mailbox, struct mail *mail, struct err *err);

/* As mailbox_post, but may use the reserve, and when that is full waits until there is room.
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

/* How many wait now; any thread. */
size_t mailbox_count(struct mailbox *mailbox);

#endif
