/* notify_sender.h — by what the thread of notify_watch.h sends: who is away and until when, how
 * many mails somebody may still get, and secrets, which are read for each message.
 *
 * Private to the thread, but for what is atomic.
 */
#ifndef SERVER_NOTIFY_SENDER_H
#define SERVER_NOTIFY_SENDER_H
#include "base/rate.h"
#include "notify/send.h"
#include "server/config_notify.h"
#include "server/notify_pauses.h"
#include <stdatomic.h>

enum {
    NOTIFY_ROUND_MS = 1000,
    NOTIFY_TOGETHER_MAX = 100,        /* changes in one mail, or in one POST */
    NOTIFY_MAILS_AT_ONCE = 20,        /* to one recipient; then … */
    NOTIFY_MAIL_EVERY_MS = 180 * 1000 /* … one of this */
};

struct notify_sender {
    const struct notify_config *config; /* of this round */
    struct notify_pauses pauses;
    struct rate_table mails; /* by recipient */
    struct notify_doubt {    /* whose message failed last, of each target; in no order */
        char *target, *recipient;
    } doubts[1 + NOTIFY_HOOKS_MAX];
    size_t doubt_count;
    atomic_bool is_ending;
    _Atomic uint64_t away; /* targets, not recipients */
    int64_t due_ms;        /* of the next round, monotonic */
};

void notify_sender_init(struct notify_sender *sender);
void notify_sender_release(struct notify_sender *sender);

/* The next round is then, or earlier. */
void notify_sender_due(struct notify_sender *sender, int64_t at_ms);
/* May not be asked yet: a target (NOTICE_MAIL, or a webhook), or a recipient of mails. The end of
 * the pause brings a round. */
bool notify_sender_is_paused(struct notify_sender *sender, const char *name);
void notify_sender_forget(struct notify_sender *sender); /* all pauses */
void notify_sender_tidy(struct notify_sender *sender);
/* Has the recipient had too many mails lately? Then a later round comes. */
bool notify_sender_is_enough(struct notify_sender *sender, const char *recipient);

/* Of the configuration's mail server, which there is; the recipient is `recipient` to the two
 * above. */
enum notify_result notify_sender_mail(struct notify_sender *sender, const char *recipient,
                                      const char *address, struct text message,
                                      char why[NOTIFY_WHY_SIZE]);
enum notify_result notify_sender_post(struct notify_sender *sender,
                                      const struct notify_hook_config *hook, struct text json,
                                      char why[NOTIFY_WHY_SIZE]);
/* Does what its last message came to make it wait behind others? */
bool notify_sender_has_failed(const struct notify_sender *sender, const char *recipient);
/* Begins or ends the pauses of both. `recipient` is what may be at fault instead of the target: who
 * gets the mail, or a name of what was posted. Where nobody knows which (NOTIFY_UNSURE) it is the
 * recipient for the first one, and the target as soon as another one fails and none was taken in
 * between. True: the target may be asked for more. */
bool notify_sender_settle(struct notify_sender *sender, const char *target, const char *recipient,
                          enum notify_result result, const char *why);

/* One mail, without any of that. */
enum notify_result notify_by_smtp(const struct notify_smtp_config *smtp, const char *address,
                                  struct text message, const atomic_bool *is_ending,
                                  char why[NOTIFY_WHY_SIZE]);

#endif
