/* peer_tls.h — TLS of a mail server of the tests, whose certificate is its own authority. */
#ifndef TEST_PEER_TLS_H
#define TEST_PEER_TLS_H
#include <stdio.h>

struct peer_tls;

/* A new key, and a certificate of "localhost", which is written to `path` in PEM. */
struct peer_tls *peer_tls_new(const char *path);
void peer_tls_free(struct peer_tls *tls);
/* The server's side of a connection: a stream, closed before the socket is; NULL: the client does
 * not like the certificate. */
FILE *peer_tls_accept(struct peer_tls *tls, int fd);

#endif
