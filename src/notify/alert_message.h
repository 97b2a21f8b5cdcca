/* alert_message.h — what is sent about alerts: a mail, and the body of a webhook.
 *
 * Pure. Formats: docs/rfc/0021-notifications.md, section Alerts; version 4 of Alertmanager's
 * webhook. The same alerts give the same Message-ID and fingerprints.
 */
#ifndef NOTIFY_ALERT_MESSAGE_H
#define NOTIFY_ALERT_MESSAGE_H
#include "model/alert.h"

/* A mail about at least one alert that has begun or ended. */
struct notify_alert_letter {
    const char *from, *to; /* good addresses */
    const struct alert *const *alerts;
    size_t count;
    const char *portal_url; /* without a slash at its end; NULL: it is not known */
    int64_t now_ms;
};
void notify_alert_letter_write(const struct notify_alert_letter *letter, struct buf *out);

/* The body of a POST about at least one alert; all have the same name. */
struct notify_alert_group {
    const struct alert *const *alerts;
    size_t count;
    size_t left_out; /* further ones that stand */
    const char *portal_url;
};
void notify_alert_group_write(const struct notify_alert_group *group, struct buf *out);

#endif
