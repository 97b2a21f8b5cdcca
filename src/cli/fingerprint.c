#include "cli/fingerprint.h"
#include "base/buf.h"
#include <gnutls/abstract.h>
#include <gnutls/crypto.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <string.h>

enum { SHA256_SIZE = 32, SHA256_BASE64_LENGTH = 44 };
static const char prefix[] = "sha256//";

/* The public key of a certificate, as DER; a negative code of GnuTLS. */
static int public_key(const char *pem, gnutls_datum_t *der)
{
    gnutls_datum_t text = {(unsigned char *)(uintptr_t)pem, (unsigned)strlen(pem)};
    gnutls_x509_crt_t certificate = NULL;
    gnutls_pubkey_t key = NULL;
    int code = gnutls_x509_crt_init(&certificate);
    if (code == 0)
        code = gnutls_x509_crt_import(certificate, &text, GNUTLS_X509_FMT_PEM);
    if (code == 0)
        code = gnutls_pubkey_init(&key);
    if (code == 0)
        code = gnutls_pubkey_import_x509(key, certificate, 0);
    if (code == 0)
        code = gnutls_pubkey_export2(key, GNUTLS_X509_FMT_DER, der);
    gnutls_pubkey_deinit(key);
    gnutls_x509_crt_deinit(certificate);
    return code;
}

char *fingerprint_of(const char *pem)
{
    unsigned char digest[SHA256_SIZE];
    gnutls_datum_t der = {0}, encoded = {0};
    struct buf text = BUF_INIT;
    int code = pem ? public_key(pem, &der) : -1;
    if (code == 0)
        code = gnutls_hash_fast(GNUTLS_DIG_SHA256, der.data, der.size, digest);
    if (code == 0)
        code = gnutls_base64_encode2(&(gnutls_datum_t){digest, sizeof digest}, &encoded);
    if (code == 0)
        buf_format(&text, "%s%.*s", prefix, (int)encoded.size, (const char *)encoded.data);
    gnutls_free(encoded.data);
    gnutls_free(der.data);
    return code == 0 ? buf_steal(&text) : NULL;
}

bool fingerprint_is_whole(const char *text)
{
    size_t length = strlen(prefix);
    return strncmp(text, prefix, length) == 0 && strlen(text) == length + SHA256_BASE64_LENGTH;
}
