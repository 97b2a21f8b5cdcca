/* message.h — what is sent about changes of jobs: a mail, and the body of a webhook; and a mail
 * about decisions on requests.
 *
 * Pure. Formats: docs/rfc/0021-notifications.md; RFC 5322, 2045 and 2047 of a mail; version 4 of
 * Alertmanager's webhook.
 */
#ifndef NOTIFY_MESSAGE_H
#define NOTIFY_MESSAGE_H
#include "base/text.h"
#include "model/notice.h"
#include "notify/mail_text.h"
#include <stddef.h>
#include <stdint.h>

struct buf;

/* One mail about at least one change. */
struct notify_letter {
    const char *from, *to; /* good addresses */
    const struct notice *const *notices;
    size_t count;
    const char *portal_url; /* without a slash at its end; NULL: it is not known */
    int64_t now_ms;
};
void notify_letter_write(const struct notify_letter *letter, struct buf *out);
/* A mail by which an administrator sees that mails arrive. */
void notify_trial_write(const struct notify_letter *letter, struct buf *out);

/* The body of a POST about at least one change. */
struct notify_alerts_body {
    const struct notice *const *notices;
    size_t count;
    const char *portal_url;
};
void notify_alerts_write(const struct notify_alerts_body *alerts, struct buf *out);

#endif
