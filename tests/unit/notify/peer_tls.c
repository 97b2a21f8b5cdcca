#include "peer_tls.h"
#include "base/memory.h"
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdlib.h>
#include <time.h>

struct peer_tls {
    gnutls_x509_privkey_t key;
    gnutls_x509_crt_t certificate;
    gnutls_certificate_credentials_t credentials;
};

static void must(int code)
{
    if (code < 0)
        abort();
}

static void pem_write(const struct peer_tls *tls, const char *path)
{
    gnutls_datum_t pem;
    must(gnutls_x509_crt_export2(tls->certificate, GNUTLS_X509_FMT_PEM, &pem));
    FILE *file = fopen(path, "w");
    if (!file || fwrite(pem.data, pem.size, 1, file) != 1 || fclose(file) != 0)
        abort();
    gnutls_free(pem.data);
}

struct peer_tls *peer_tls_new(const char *path)
{
    struct peer_tls *tls = mem_zero(1, sizeof *tls);
    const time_t now = time(NULL);
    must(gnutls_x509_privkey_init(&tls->key));
    must(gnutls_x509_privkey_generate(tls->key, GNUTLS_PK_ECDSA,
                                      GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0));
    gnutls_x509_crt_t *crt = &tls->certificate;
    must(gnutls_x509_crt_init(crt));
    must(gnutls_x509_crt_set_version(*crt, 3));
    must(gnutls_x509_crt_set_key(*crt, tls->key));
    must(gnutls_x509_crt_set_serial(*crt, "\x01", 1));
    must(gnutls_x509_crt_set_activation_time(*crt, now - 3600));
    must(gnutls_x509_crt_set_expiration_time(*crt, now + 86400));
    must(gnutls_x509_crt_set_dn(*crt, "CN=localhost", NULL));
    must(gnutls_x509_crt_set_subject_alt_name(*crt, GNUTLS_SAN_DNSNAME, "localhost", 9,
                                              GNUTLS_FSAN_SET));
    must(gnutls_x509_crt_set_basic_constraints(*crt, 1, -1));
    must(gnutls_x509_crt_sign2(*crt, *crt, tls->key, GNUTLS_DIG_SHA256, 0));
    must(gnutls_certificate_allocate_credentials(&tls->credentials));
    must(gnutls_certificate_set_x509_key(tls->credentials, crt, 1, tls->key));
    pem_write(tls, path);
    return tls;
}

void peer_tls_free(struct peer_tls *tls)
{
    gnutls_certificate_free_credentials(tls->credentials);
    gnutls_x509_crt_deinit(tls->certificate);
    gnutls_x509_privkey_deinit(tls->key);
    mem_free(tls);
}

static ssize_t stream_read(void *context, char *bytes, size_t size)
{
    const ssize_t length = gnutls_record_recv(context, bytes, size);
    return length < 0 ? 0 : length; /* who hangs up without a good bye */
}

static ssize_t stream_write(void *context, const char *bytes, size_t size)
{
    const ssize_t length = gnutls_record_send(context, bytes, size);
    return length < 0 ? 0 : length;
}

static int stream_close(void *context)
{
    gnutls_deinit(context);
    return 0;
}

FILE *peer_tls_accept(struct peer_tls *tls, int fd)
{
    gnutls_session_t session;
    must(gnutls_init(&session, GNUTLS_SERVER));
    must(gnutls_set_default_priority(session));
    must(gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, tls->credentials));
    gnutls_transport_set_int(session, fd);
    int code;
    do
        code = gnutls_handshake(session);
    while (code < 0 && !gnutls_error_is_fatal(code));
    if (code < 0) {
        gnutls_deinit(session);
        return NULL;
    }
    return fopencookie(
        session, "r+",
        (cookie_io_functions_t){.read = stream_read, .write = stream_write, .close = stream_close});
}
