/* settings.h — the servers that a user has logged in to, and what each gave:
 * ~/.config/skep/settings (0600). $XDG_CONFIG_HOME is honoured.
 *
 * A context is one login: a server, the user there, the token, and the certificate that was
 * trusted, under a name. One of them is the current one. The file has one `key: value` a line:
 *
 *     current: lab
 *     context: lab
 *     server: https://lab.example.org:9186
 *     user: alice
 *     …
 *
 * `context` begins the next one. A file that names none, as older versions wrote it, is one context
 * named "default". Lines with other keys are passed over, and are gone after the next login.
 */
#ifndef CLI_SETTINGS_H
#define CLI_SETTINGS_H
#include <stdbool.h>
#include <stddef.h>

/* The server that is meant when nothing says otherwise: this machine's, by its socket when there is
 * one. */
const char *settings_server(void);

struct err;

enum { CONTEXTS_MAX = 64, CONTEXT_NAME_MAX = 63 };

/* Each is on the heap and owned by the settings; NULL: not set. A name is there always. */
struct context {
    char *name, *server, *token, *user;
    char *fingerprint;       /* of the server's certificate, when it was trusted at login */
    char *certificate, *key; /* paths of what is shown to the server that asks for one */
};

struct settings {
    struct context contexts[CONTEXTS_MAX];
    size_t count;
    char *current; /* the name of one of them, or NULL */
};

void settings_release(struct settings *settings);
#define cleanup_settings __attribute__((cleanup(settings_release)))

/* A file that is not there is empty settings. ERR_FORBIDDEN: others may read it. ERR_TOO_BIG:
 * more than CONTEXTS_MAX contexts. */
int settings_load(struct settings *settings, struct err *err);
/* ERR_INVALID: a text is no line; ERR_TOO_BIG: they could not be read again. Nothing is written. */
int settings_save(const struct settings *settings, struct err *err);

/* The context of this name, or NULL. */
struct context *settings_find(struct settings *settings, const char *name);
/* The current context, or NULL. */
struct context *settings_current(struct settings *settings);
/* The context that is logged in to this server: the current one if it is, else the first. NULL:
 * none. */
struct context *settings_of_server(struct settings *settings, const char *server);

/* Whose SKEP_TOKEN is, which names no server itself: SKEP_SERVER's (`named`, NULL: not set), else
 * that of the current context. NULL: nothing says so. */
const char *settings_token_server(struct settings *settings, const char *named);
/* May it be shown to `server`, which `context` (NULL: an address) named? With nothing that says
 * whose it is, it is for an address that the user gave with it. */
bool settings_token_fits(const char *token_server, const char *server,
                         const struct context *context);

/* A new context without a server. `name` is one that context_is_name takes, and is free.
 * ERR_TOO_BIG: there are CONTEXTS_MAX of them. */
int settings_add(struct settings *settings, const char *name, struct context **context,
                 struct err *err);
/* Forget a context. When it was the current one, there is none afterwards. */
void settings_remove(struct settings *settings, struct context *context);
void settings_choose(struct settings *settings, const struct context *context);
/* Replace one of a context's texts; NULL: not set. */
void context_set(char **field, const char *value);

/* Letters, digits, '.', '_' and '-', CONTEXT_NAME_MAX of them at most, and one at least. */
bool context_is_name(const char *name);
/* What a context of this server is called when nobody says: its host, made into a name. `room` is
 * CONTEXT_NAME_MAX + 1. */
void context_name_of(const char *server, char *name);

#endif
