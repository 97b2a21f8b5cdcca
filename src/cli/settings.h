/* settings.h — which server, and the token that it gave: ~/.config/skep/settings (0600), one
 * `key: value` a line. $XDG_CONFIG_HOME is honoured. SKEP_SERVER and SKEP_TOKEN come first.
 */
#ifndef CLI_SETTINGS_H
#define CLI_SETTINGS_H

/* The server that is meant when nothing says otherwise: this machine's, by its socket when there is
 * one. */
const char *settings_server(void);

struct err;

struct settings {
    char *server, *token, *user; /* NULL: not set */
    char *fingerprint;           /* of the server's certificate, when it was trusted at login */
};

void settings_release(struct settings *settings);
#define cleanup_settings __attribute__((cleanup(settings_release)))

/* A file that is not there is empty settings. ERR_FORBIDDEN: others may read it. */
int settings_load(struct settings *settings, struct err *err);
int settings_save(const struct settings *settings, struct err *err);

#endif
