#include "api/http_tls.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/cleanup.h"
#include "sys/file.h"
#include "sys/secret.h"
#include <errno.h>
#include <gnutls/abstract.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PEM_MAX = 256 << 10, CHAIN_MAX = 16, LOADS_MAX = 1000, SHA256_SIZE = 32 };
static const time_t LIFE_S = (time_t)3650 * 86400;

/* What was read at one time. Kept until the end: a handshake may still use it. */
struct loaded {
    struct loaded *older;
    gnutls_pcert_st chain[CHAIN_MAX];
    unsigned chain_length;
    gnutls_privkey_t key;
    struct tls_clients *clients; /* NULL: they are asked for nothing */
    unsigned number;             /* from 1 */
};

struct http_tls {
    char *certificate, *key;
    struct tls_clients_config clients; /* owns its strings */
    pthread_mutex_t lock;              /* of reloads */
    _Atomic(struct loaded *) loaded;
    unsigned load_count;
};

static _Atomic(struct http_tls *) the_one;

static int tls_err(struct err *err, int code, int failure, const char *what, const char *path)
{
    return err_fail(err, code, "", "%s %s: %s", what, path, gnutls_strerror(failure));
}

/* ---- the one that is made ---- */

static void names_add(gnutls_x509_crt_t certificate)
{
    static const unsigned char v4[] = {127, 0, 0, 1};
    static const unsigned char v6[16] = {[15] = 1};
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    if (host[0])
        gnutls_x509_crt_set_subject_alt_name(certificate, GNUTLS_SAN_DNSNAME, host,
                                             (unsigned)strlen(host), GNUTLS_FSAN_APPEND);
    gnutls_x509_crt_set_subject_alt_name(certificate, GNUTLS_SAN_DNSNAME, "localhost", 9,
                                         GNUTLS_FSAN_APPEND);
    gnutls_x509_crt_set_subject_alt_name(certificate, GNUTLS_SAN_IPADDRESS, v4, sizeof v4,
                                         GNUTLS_FSAN_APPEND);
    gnutls_x509_crt_set_subject_alt_name(certificate, GNUTLS_SAN_IPADDRESS, v6, sizeof v6,
                                         GNUTLS_FSAN_APPEND);
}

static int certificate_fill(gnutls_x509_crt_t certificate, gnutls_x509_privkey_t key)
{
    unsigned char serial[16];
    int answer = gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof serial);
    serial[0] &= 0x7f; /* positive */
    if (answer == 0)
        answer = gnutls_x509_crt_set_version(certificate, 3);
    if (answer == 0)
        answer = gnutls_x509_crt_set_serial(certificate, serial, sizeof serial);
    if (answer == 0)
        answer = gnutls_x509_crt_set_activation_time(certificate, time(NULL) - 86400);
    if (answer == 0)
        answer = gnutls_x509_crt_set_expiration_time(certificate, time(NULL) + LIFE_S);
    if (answer == 0)
        answer = gnutls_x509_crt_set_dn(certificate, "CN=skepd", NULL);
    if (answer == 0)
        answer = gnutls_x509_crt_set_key(certificate, key);
    if (answer == 0)
        answer = gnutls_x509_crt_set_basic_constraints(certificate, 0, -1);
    if (answer == 0)
        answer = gnutls_x509_crt_set_key_usage(certificate, GNUTLS_KEY_DIGITAL_SIGNATURE);
    if (answer == 0)
        answer = gnutls_x509_crt_set_key_purpose_oid(certificate, GNUTLS_KP_TLS_WWW_SERVER, 0);
    names_add(certificate);
    if (answer == 0)
        answer = gnutls_x509_crt_sign2(certificate, certificate, key, GNUTLS_DIG_SHA256, 0);
    return answer;
}

static struct text text_of_datum(const gnutls_datum_t *datum)
{
    return (struct text){(const char *)datum->data, datum->size};
}

static int pair_write(const struct http_tls *tls, const gnutls_datum_t *certificate,
                      const gnutls_datum_t *key, struct err *err)
{
    /* the key first: a certificate without one would be taken for whole */
    int code = file_write(tls->key, text_of_datum(key), 0600, err);
    return code ? code : file_write(tls->certificate, text_of_datum(certificate), 0644, err);
}

static void key_release(gnutls_x509_privkey_t *key)
{
    gnutls_x509_privkey_deinit(*key);
}

static void certificate_release(gnutls_x509_crt_t *certificate)
{
    gnutls_x509_crt_deinit(*certificate);
}

static void pubkey_release(gnutls_pubkey_t *key)
{
    gnutls_pubkey_deinit(*key);
}

static void datum_release(gnutls_datum_t *datum)
{
    gnutls_free(datum->data);
}

#define cleanup_key         __attribute__((cleanup(key_release)))
#define cleanup_certificate __attribute__((cleanup(certificate_release)))
#define cleanup_pubkey      __attribute__((cleanup(pubkey_release)))
#define cleanup_datum       __attribute__((cleanup(datum_release)))

static int pair_make(const struct http_tls *tls, struct err *err)
{
    cleanup_key gnutls_x509_privkey_t key = NULL;
    cleanup_certificate gnutls_x509_crt_t certificate = NULL;
    cleanup_datum gnutls_datum_t key_pem = {0}, certificate_pem = {0};
    int answer = gnutls_x509_privkey_init(&key);
    if (answer == 0)
        answer = gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA,
                                              GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
    if (answer == 0)
        answer = gnutls_x509_crt_init(&certificate);
    if (answer == 0)
        answer = certificate_fill(certificate, key);
    if (answer == 0)
        answer = gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, &key_pem);
    if (answer == 0)
        answer = gnutls_x509_crt_export2(certificate, GNUTLS_X509_FMT_PEM, &certificate_pem);
    return answer < 0 ? tls_err(err, ERR_INTERNAL, answer, "make", tls->certificate)
                      : pair_write(tls, &certificate_pem, &key_pem, err);
}

/* ---- reading ---- */

static void loaded_free(struct loaded *loaded)
{
    if (!loaded)
        return;
    for (unsigned i = 0; i < loaded->chain_length; i++)
        gnutls_pcert_deinit(&loaded->chain[i]);
    if (loaded->key)
        gnutls_privkey_deinit(loaded->key);
    tls_clients_free(loaded->clients);
    mem_free(loaded);
}

static int chain_read(const char *path, struct loaded *loaded, struct err *err)
{
    cleanup_buf struct buf pem = BUF_INIT;
    int code = file_read(path, PEM_MAX, &pem, err);
    if (code)
        return code;
    gnutls_datum_t datum = {(unsigned char *)pem.at, (unsigned)pem.length};
    loaded->chain_length = CHAIN_MAX;
    int answer = gnutls_pcert_list_import_x509_raw(loaded->chain, &loaded->chain_length, &datum,
                                                   GNUTLS_X509_FMT_PEM,
                                                   GNUTLS_X509_CRT_LIST_IMPORT_FAIL_IF_EXCEED);
    if (answer < 0)
        loaded->chain_length = 0;
    if (answer == GNUTLS_E_SHORT_MEMORY_BUFFER)
        return err_fail(err, ERR_TOO_BIG, "", "%s holds more than %d certificates", path,
                        CHAIN_MAX);
    return answer < 0 ? tls_err(err, ERR_INVALID, answer, "the certificate", path) : 0;
}

/* A file of root's may be read by a group, which is how a cluster and a machine's own authority
 * give a key to a server that is not root: as PostgreSQL has it. */
static bool is_for_others(const struct stat *status)
{
    const bool is_given = status->st_uid == 0 && geteuid() != 0;
    return status->st_mode & (is_given ? 037 : 077);
}

static int key_read(const char *path, struct loaded *loaded, struct err *err)
{
    cleanup_buf struct buf pem = BUF_INIT;
    struct stat status;
    if (stat(path, &status) == 0 && is_for_others(&status))
        return err_fail(err, ERR_FORBIDDEN, "", "others may read %s: chmod 600 it", path);
    int code = file_read(path, PEM_MAX, &pem, err);
    if (code)
        return code;
    gnutls_datum_t datum = {(unsigned char *)pem.at, (unsigned)pem.length};
    int answer = gnutls_privkey_init(&loaded->key);
    if (answer == 0)
        answer = gnutls_privkey_import_x509_raw(loaded->key, &datum, GNUTLS_X509_FMT_PEM, NULL, 0);
    secret_wipe(pem.at, pem.length);
    return answer < 0 ? tls_err(err, ERR_INVALID, answer, "the key", path) : 0;
}

/* The identity of a public key; or a negative answer of GnuTLS. */
static int key_digest(gnutls_pubkey_t key, unsigned char digest[SHA256_SIZE])
{
    cleanup_datum gnutls_datum_t der = {0};
    int answer = gnutls_pubkey_export2(key, GNUTLS_X509_FMT_DER, &der);
    return answer < 0 ? answer : gnutls_hash_fast(GNUTLS_DIG_SHA256, der.data, der.size, digest);
}

static int pair_check(const struct http_tls *tls, const struct loaded *loaded, struct err *err)
{
    unsigned char digests[2][SHA256_SIZE] = {{0}};
    cleanup_pubkey gnutls_pubkey_t key = NULL;
    int answer = gnutls_pubkey_init(&key);
    if (answer == 0)
        answer = gnutls_pubkey_import_privkey(key, loaded->key, 0, 0);
    if (answer == 0)
        answer = key_digest(key, digests[0]);
    if (answer == 0)
        answer = key_digest(loaded->chain[0].pubkey, digests[1]);
    if (answer < 0)
        return tls_err(err, ERR_INVALID, answer, "the key", tls->key);
    if (memcmp(digests[0], digests[1], SHA256_SIZE) != 0)
        return err_fail(err, ERR_INVALID, "", "%s is not the key of %s", tls->key,
                        tls->certificate);
    return 0;
}

static int tls_load(struct http_tls *tls, struct err *err)
{
    struct loaded *loaded = mem_zero(1, sizeof *loaded);
    int code = chain_read(tls->certificate, loaded, err);
    if (!code)
        code = key_read(tls->key, loaded, err);
    if (!code)
        code = pair_check(tls, loaded, err);
    if (!code && tls->clients.mode != TLS_CLIENT_OFF)
        code = tls_clients_read(&tls->clients, &loaded->clients, err);
    if (code) {
        loaded_free(loaded);
        return code;
    }
    loaded->older = atomic_load(&tls->loaded);
    loaded->number = ++tls->load_count;
    atomic_store(&tls->loaded, loaded);
    return 0;
}

/* ---- the port ---- */

static char *path_in(const char *folder, const char *name)
{
    struct buf path = BUF_INIT;
    buf_format(&path, "%s/%s", folder, name);
    return buf_steal(&path);
}

static int pair_of_folder(struct http_tls *tls, const char *folder, struct err *err)
{
    tls->certificate = path_in(folder, "certificate.pem");
    tls->key = path_in(folder, "key.pem");
    int code = dir_make(folder, 0700, err);
    if (!code && access(tls->certificate, F_OK) < 0 && errno == ENOENT)
        code = pair_make(tls, err);
    return code;
}

static char *copy_of(const char *text)
{
    return text ? mem_copy(text) : NULL;
}

int http_tls_open(const struct http_tls_config *config, struct http_tls **out, struct err *err)
{
    struct http_tls *none = NULL;
    struct http_tls *tls = mem_zero(1, sizeof *tls);
    tls->clients = (struct tls_clients_config){.mode = config->clients.mode,
                                               .authorities = copy_of(config->clients.authorities),
                                               .revoked = copy_of(config->clients.revoked),
                                               .pattern = copy_of(config->clients.pattern)};
    pthread_mutex_init(&tls->lock, NULL);
    int code = 0;
    if (!atomic_compare_exchange_strong(&the_one, &none, tls)) {
        code = err_fail(err, ERR_CONFLICT, "", "this process shows a certificate already");
    } else if (config->certificate) {
        tls->certificate = mem_copy(config->certificate);
        tls->key = mem_copy(config->key);
    } else {
        code = pair_of_folder(tls, config->folder, err);
    }
    if (!code)
        code = tls_load(tls, err);
    if (code) {
        http_tls_close(tls);
        return code;
    }
    *out = tls;
    return 0;
}

int http_tls_reload(struct http_tls *tls, struct err *err)
{
    pthread_mutex_lock(&tls->lock);
    int code = tls->load_count >= LOADS_MAX
                   ? err_fail(err, ERR_TOO_BIG, "", "it was read %d times", LOADS_MAX)
                   : tls_load(tls, err);
    pthread_mutex_unlock(&tls->lock);
    return code;
}

void http_tls_close(struct http_tls *tls)
{
    if (!tls)
        return;
    struct http_tls *own = tls;
    atomic_compare_exchange_strong(&the_one, &own, NULL);
    struct loaded *loaded = atomic_load(&tls->loaded);
    while (loaded) {
        struct loaded *older = loaded->older;
        loaded_free(loaded);
        loaded = older;
    }
    pthread_mutex_destroy(&tls->lock);
    mem_free(tls->certificate);
    mem_free(tls->key);
    mem_free((void *)(uintptr_t)tls->clients.authorities);
    mem_free((void *)(uintptr_t)tls->clients.revoked);
    mem_free((void *)(uintptr_t)tls->clients.pattern);
    mem_free(tls);
}

void http_tls_fingerprint(struct http_tls *tls, char text[TLS_FINGERPRINT_SIZE])
{
    unsigned char digest[SHA256_SIZE] = {0};
    gnutls_datum_t encoded = {0};
    key_digest(atomic_load(&tls->loaded)->chain[0].pubkey, digest); /* it was read once already */
    gnutls_base64_encode2(&(gnutls_datum_t){digest, sizeof digest}, &encoded);
    snprintf(text, TLS_FINGERPRINT_SIZE, "sha256//%.*s", (int)encoded.size, (char *)encoded.data);
    gnutls_free(encoded.data);
}

static int retrieve(gnutls_session_t session, const gnutls_datum_t *names, int name_count,
                    const gnutls_pk_algorithm_t *algorithms, int algorithm_count,
                    gnutls_pcert_st **chain, unsigned *chain_length, gnutls_privkey_t *key)
{
    (void)session, (void)names, (void)name_count, (void)algorithms, (void)algorithm_count;
    struct http_tls *tls = atomic_load(&the_one);
    if (!tls)
        return -1;
    struct loaded *loaded = atomic_load(&tls->loaded);
    *chain = loaded->chain;
    *chain_length = loaded->chain_length;
    *key = loaded->key;
    return 0;
}

/* It is called for the client's first message, before anything is answered. What is shown is judged
 * with each request, so that who is refused is told why. */
static int retrieve_and_ask(gnutls_session_t session, const gnutls_datum_t *names, int name_count,
                            const gnutls_pk_algorithm_t *algorithms, int algorithm_count,
                            gnutls_pcert_st **chain, unsigned *chain_length, gnutls_privkey_t *key)
{
    int answer =
        retrieve(session, names, name_count, algorithms, algorithm_count, chain, chain_length, key);
    struct http_tls *tls = atomic_load(&the_one);
    if (answer == 0 && tls && tls->clients.mode != TLS_CLIENT_OFF)
        gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUEST);
    return answer;
}

static void *pointer_of(gnutls_certificate_retrieve_function2 *function)
{
    void *pointer;
    memcpy(&pointer, &function, sizeof pointer); /* ISO C has no cast between the two */
    return pointer;
}

void *http_tls_retrieve(void)
{
    return pointer_of(retrieve);
}

void *http_tls_retrieve_and_ask(void)
{
    return pointer_of(retrieve_and_ask);
}

bool http_tls_client(struct http_tls *tls, struct gnutls_session_int *session,
                     struct tls_client *client, unsigned *load)
{
    const struct loaded *loaded = atomic_load(&tls->loaded);
    if (!loaded->clients)
        return false;
    const bool is_over = client->state == TLS_CLIENT_GOOD && client->expires_s <= time(NULL);
    if (*load != loaded->number || is_over)
        tls_client_look(loaded->clients, session, client);
    *load = loaded->number;
    return true;
}

bool http_tls_wants_client(const struct http_tls *tls)
{
    return tls->clients.mode == TLS_CLIENT_REQUIRED;
}
