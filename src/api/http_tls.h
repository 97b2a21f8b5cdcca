/* http_tls.h — the certificate that the server shows, and its fingerprint.
 *
 * Edge, over GnuTLS (which libmicrohttpd speaks TLS with). One per process: the library asks for
 * the certificate without telling for whom. Safe from any thread.
 *
 * The fingerprint is "sha256//" and the base64 of the SHA-256 of the public key, as curl and
 * HTTP's key pinning write it (RFC 7469): it stays when the certificate is renewed with its key.
 */
#ifndef API_HTTP_TLS_H
#define API_HTTP_TLS_H
#include "api/tls_client.h"

struct err;
struct http_tls;

enum { TLS_FINGERPRINT_SIZE = 64 };

struct http_tls_config {
    /* PEM: the certificate with those that vouch for it, and its key, which nobody else may read.
     * Both NULL: `folder` (made when it is not there) holds certificate.pem and key.pem, made at
     * the first start: ECDSA P-256, for ten years, for this machine's names and loopback. */
    const char *certificate, *key;
    const char *folder;
    struct tls_clients_config clients; /* mode TLS_CLIENT_OFF: clients are asked for nothing */
};

/* Strings are copied. ERR_NOT_FOUND, ERR_IO: a file; ERR_INVALID: what stands in it, or the two do
 * not belong together; ERR_FORBIDDEN: others may read the key; ERR_CONFLICT: there is one. */
int http_tls_open(const struct http_tls_config *config, struct http_tls **tls, struct err *err);
/* Read the files again; connections that exist keep what they have. When it fails, everything stays
 * as it was. At most 1,000 times. */
int http_tls_reload(struct http_tls *tls, struct err *err);
/* After the daemon that uses it has stopped. NULL is fine. */
void http_tls_close(struct http_tls *tls);

void http_tls_fingerprint(struct http_tls *tls, char text[TLS_FINGERPRINT_SIZE]);

/* A gnutls_certificate_retrieve_function2 *, for MHD_OPTION_HTTPS_CERT_CALLBACK. The second asks
 * the client for a certificate, too, when the configuration wants it. */
void *http_tls_retrieve(void);
void *http_tls_retrieve_and_ask(void);

/* What a connection's client has shown; `load`, 0 at first, says by which reading of the files it
 * was looked at. It is looked at again when these were read again, and after its time. False:
 * clients are asked for nothing. */
bool http_tls_client(struct http_tls *tls, struct gnutls_session_int *session,
                     struct tls_client *client, unsigned *load);
bool http_tls_wants_client(const struct http_tls *tls); /* TLS_CLIENT_REQUIRED */
/* The versions and ciphers that are spoken: TLS 1.3 and 1.2. */
#define HTTP_TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

#endif
