/* fetch.h — one request to a provider, over libcurl. Blocks: never on a thread that serves
 * requests.
 *
 * https alone, but for loopback addresses; no redirection is followed. Limits: FETCH_MS for all of
 * it, FETCH_BODY_MAX for the reply.
 */
#ifndef SIGNON_FETCH_H
#define SIGNON_FETCH_H
#include "base/text.h"
#include <stdatomic.h>
#include <stdbool.h>

struct buf;
struct err;

enum { FETCH_MS = 10000, FETCH_CONNECT_MS = 5000, FETCH_BODY_MAX = 1 << 20, FETCH_URL_MAX = 2048 };

struct fetch {
    const char *url;
    const char *form;             /* of a POST, encoded; NULL: GET */
    const char *user, *password;  /* Basic; NULL: none */
    const char *bearer;           /* NULL: none */
    const char *ca_file;          /* PEM: whom to trust; NULL: whom the system trusts */
    const atomic_bool *is_ending; /* becomes true: give up; may be NULL */
};

/* May it be asked, or a browser be sent there? https, or http to a loopback address; no user name
 * in it, and nothing that a header could not hold. */
bool fetch_url_is_good(const char *url);

/* The whole body, and the status. ERR_UNAVAILABLE: there was no whole reply. ERR_INVALID: the URL.
 */
int fetch_run(const struct fetch *fetch, struct buf *body, long *status, struct err *err);

/* Append `text` with everything percent-coded that is not a letter, digit or one of -._~ */
void fetch_encode(struct buf *out, struct text text);
/* One more parameter of the query of a URL without a fragment. */
void fetch_parameter(struct buf *url, const char *name, struct text value);

#endif
