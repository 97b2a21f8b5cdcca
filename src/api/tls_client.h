/* tls_client.h — certificates that clients show: whether they are good, and which user they name.
 *
 * Edge, over GnuTLS. A certificate is good when one of the authorities of a file vouches for it,
 * for clients (extended key usage clientAuth, or none), it is within its time, and no revocation
 * list of another file names it. The handshake has proved by then that the client has its key.
 *
 * Which user it names is said by a pattern (base/name_pattern.h): "CN:{user}" looks at the
 * subject's common name, "email:{user}@example.org" at the mail addresses and
 * "uri:spiffe://example.org/{user}" at the URIs among the alternative names. What stands for {user}
 * is the name of an account, as it is written.
 */
#ifndef API_TLS_CLIENT_H
#define API_TLS_CLIENT_H
#include "base/text.h"
#include "store/store.h"
#include <stdbool.h>
#include <stdint.h>

struct err;
struct gnutls_session_int; /* GnuTLS's session */
struct tls_clients;

/* Stored nowhere. */
enum tls_client_mode { TLS_CLIENT_OFF, TLS_CLIENT_OPTIONAL, TLS_CLIENT_REQUIRED };

struct tls_clients_config {
    enum tls_client_mode mode;
    const char *authorities; /* PEM file */
    const char *revoked;     /* PEM file of revocation lists; NULL: none */
    const char *pattern;     /* a good one */
};

/* Read both files. ERR_NOT_FOUND, ERR_IO: a file; ERR_INVALID: what stands in it, or the pattern.
 */
int tls_clients_read(const struct tls_clients_config *config, struct tls_clients **clients,
                     struct err *err);
void tls_clients_free(struct tls_clients *clients); /* NULL is fine */

enum tls_client_state { TLS_CLIENT_NONE, TLS_CLIENT_GOOD, TLS_CLIENT_BAD };

/* What a connection's client has shown. */
struct tls_client {
    enum tls_client_state state;
    char user[STORE_USER_NAME_MAX + 1]; /* GOOD: whom it names; "": `text` says why nobody */
    char text[200];                     /* BAD: why, for people */
    int64_t expires_s;                  /* GOOD: Unix time */
};

/* Look at what the session's client has shown, as of now. Any thread. */
void tls_client_look(const struct tls_clients *clients, struct gnutls_session_int *session,
                     struct tls_client *client);

#endif
