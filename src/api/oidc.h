/* oidc.h — login by OpenID Connect: what the operator sets, and what the API keeps of a login.
 *
 * A login that is under way is kept by the browser alone, in a cookie that is sealed: nobody can
 * fill the server's memory with logins, and what the provider sends back is taken only from the
 * browser that began. A token goes to the pages of configured origins in the query, as OpenPAI's
 * did. Programs of the user's machine (http://127.0.0.1:PORT/) get a code instead, which is good
 * for a token once they show the word behind the challenge that they began with: RFC 8252, 7636.
 */
#ifndef API_OIDC_H
#define API_OIDC_H
#include "api/signon_user.h"
#include "base/text.h"
#include "signon/oidc.h"

enum {
    OIDC_LOGIN_S = 600,       /* from the beginning of a login to its return */
    OIDC_EXCHANGE_S = 60,     /* from the return to the token of a program */
    OIDC_REDIRECT_MAX = 1024, /* bytes of redirect_uri, and of from */
};

struct api_oidc {           /* strings are borrowed */
    const char *public_url; /* under which browsers reach this API: "https://skep.example.org" */
    const char *const *portals; /* origins of pages that may be given a token, beside that URL's */
    size_t portal_count;
    struct oidc_config provider; /* return_url and is_ending are set by the API */
    struct signon_policy policy;
};

/* May a browser be sent there after a login? *is_program: it is a program of the user's machine. */
bool oidc_redirect_is_allowed(const struct api_oidc *config, struct text uri, bool *is_program);

#endif
