/* send.h — one mail by SMTP, or one POST to a webhook, over libcurl. Blocks: of a thread of its
 * own.
 *
 * Edge. One request takes NOTIFY_MS at most, or until *is_ending (libcurl looks once a second). TLS
 * is of version 1.2 at least, and certificates are checked; no redirection is followed.
 */
#ifndef NOTIFY_SEND_H
#define NOTIFY_SEND_H
#include "base/text.h"
#include <stdatomic.h>
#include <stdbool.h>

enum { NOTIFY_MS = 30000, NOTIFY_CONNECT_MS = 10000, NOTIFY_WHY_SIZE = 240, NOTIFY_URL_MAX = 2048 };

enum notify_result {
    NOTIFY_TAKEN,   /* it is the other side's now */
    NOTIFY_REFUSED, /* and will be again: of this message or this recipient */
    NOTIFY_LATER,   /* not now: of this message or this recipient; others may be taken */
    NOTIFY_UNSURE,  /* not now: of this message or this recipient, or of all */
    NOTIFY_AWAY,    /* nothing can be sent there now */
};

struct notify_smtp {
    const char *url;             /* smtp://HOST[:PORT] or smtps://HOST[:PORT] */
    bool is_plain;               /* smtp: without TLS; else it begins with STARTTLS */
    const char *user, *password; /* NULL: no login */
    const char *ca_file;         /* PEM: whom to trust; NULL: whom the system trusts */
    const char *from;            /* good address, as `to` is */
};
enum notify_result notify_mail(const struct notify_smtp *smtp, const char *to, struct text message,
                               const atomic_bool *is_ending, char why[NOTIFY_WHY_SIZE]);

struct notify_hook {
    const char *url;     /* http or https */
    const char *token;   /* Bearer; NULL: none */
    const char *ca_file; /* as above */
};
enum notify_result notify_post(const struct notify_hook *hook, struct text json,
                               const atomic_bool *is_ending, char why[NOTIFY_WHY_SIZE]);

/* May it be used? The scheme is one of the two given, there is a host, and no user name or password
 * stands in it. */
bool notify_url_is_good(const char *url, const char *scheme, const char *tls_scheme);
/* Is its host this machine, by a loopback address? */
bool notify_url_is_loopback(const char *url);

#endif
