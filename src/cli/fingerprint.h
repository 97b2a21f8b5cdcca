/* fingerprint.h — how a server's certificate is known again: "sha256//" and the base64 of the
 * SHA-256 of its public key, as curl and HTTP's key pinning write it (RFC 7469).
 */
#ifndef CLI_FINGERPRINT_H
#define CLI_FINGERPRINT_H
#include <stdbool.h>

/* Of a certificate as PEM; on the heap (mem_free). NULL: it is none, or NULL. */
char *fingerprint_of(const char *pem);
bool fingerprint_is_whole(const char *text);

#endif
