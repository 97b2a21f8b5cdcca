/* config_notify.h — the configuration's `notifications`: where messages about jobs and alerts are
 * sent.
 *
 * Private to server; config_shape.c has the keys. Secrets stand in files, which are read when
 * something is sent, so that a new one needs no reload.
 */
#ifndef SERVER_CONFIG_NOTIFY_H
#define SERVER_CONFIG_NOTIFY_H
#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct doc;
struct problems;

enum {
    NOTIFY_HOOKS_MAX = 20,
    NOTIFY_KEEP_HOURS = 48,
    NOTIFY_ALERT_MAILS_MAX = 10,
    NOTIFY_ALERT_AFTER_S = 60,
};

struct notify_config {
    const char *portal_url; /* without a slash at its end; NULL: not known */
    uint32_t keep_hours;
    bool has_smtp;
    struct notify_smtp_config {
        const char *url, *from;
        bool starts_tls;                  /* smtp: */
        const char *user, *password_file; /* both NULL: no login */
        const char *ca_file;              /* NULL: whom the system trusts */
    } smtp;
    struct notify_hook_config {
        const char *name; /* unique */
        const char *url;
        const char *token_file, *ca_file; /* NULL: none */
        bool has_events;
        unsigned events; /* NOTICE_BIT of the kinds, of all jobs; without: what the jobs ask for */
        bool has_alerts; /* it is told of alerts, too */
    } hooks[NOTIFY_HOOKS_MAX];
    size_t hook_count;
    struct {
        const char *mail[NOTIFY_ALERT_MAILS_MAX]; /* addresses, each once */
        size_t mail_count;
        bool is_error_only; /* nobody is told of warnings */
        uint32_t after_s;
    } alerts;
};

/* Nothing is sent anywhere. */
void config_notify_init(struct notify_config *config);
/* Of the whole document, which fits its shape; what is wrong beyond that is a problem. */
void config_notify_read(const struct doc *doc, struct arena *arena, struct notify_config *config,
                        struct problems *problems);
/* With copies of all texts in the arena. */
void config_notify_copy(struct notify_config *to, const struct notify_config *from,
                        struct arena *arena);
/* Can anything be sent that a job's file asks for: by mail; or to a webhook? */
bool config_notify_tells_users(const struct notify_config *config);

#endif
