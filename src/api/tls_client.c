#include "api/tls_client.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/name_pattern.h"
#include "sys/file.h"
#include <assert.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <string.h>

enum { FILE_MAX = 16 << 20, CHAIN_MAX = 16, NAME_MAX_BYTES = 512, NAMES_MAX = 64 };

struct tls_clients {
    gnutls_x509_trust_list_t trusted;
    char *pattern;
};

/* --- the files --- */

static int file_datum(const char *path, struct buf *pem, gnutls_datum_t *datum, struct err *err)
{
    int code = file_read(path, FILE_MAX, pem, err);
    *datum = (gnutls_datum_t){(unsigned char *)pem->at, (unsigned)pem->length};
    return code;
}

static int authorities_read(struct tls_clients *clients, const char *path, struct err *err)
{
    cleanup_buf struct buf pem = BUF_INIT;
    gnutls_datum_t datum;
    int code = file_datum(path, &pem, &datum, err);
    if (code)
        return code;
    int count = gnutls_x509_trust_list_add_trust_mem(clients->trusted, &datum, NULL,
                                                     GNUTLS_X509_FMT_PEM, 0, 0);
    if (count <= 0)
        return err_fail(err, ERR_INVALID, "", "%s holds no certificate of an authority%s%s", path,
                        count < 0 ? ": " : "", count < 0 ? gnutls_strerror(count) : "");
    return 0;
}

static int revoked_read(struct tls_clients *clients, const char *path, struct err *err)
{
    cleanup_buf struct buf pem = BUF_INIT;
    gnutls_datum_t datum;
    gnutls_x509_crl_t *lists = NULL;
    unsigned count = 0;
    int code = file_datum(path, &pem, &datum, err);
    if (code)
        return code;
    int answer = gnutls_x509_crl_list_import2(&lists, &count, &datum, GNUTLS_X509_FMT_PEM, 0);
    if (answer < 0 || count == 0)
        return err_fail(err, ERR_INVALID, "", "%s holds no revocation list%s%s", path,
                        answer < 0 ? ": " : "", answer < 0 ? gnutls_strerror(answer) : "");
    /* only those that an authority has signed are taken */
    int added =
        gnutls_x509_trust_list_add_crls(clients->trusted, lists, count, GNUTLS_TL_VERIFY_CRL, 0);
    gnutls_free(lists);
    if (added < (int)count)
        return err_fail(err, ERR_INVALID, "",
                        "%s holds a revocation list that none of the authorities has signed", path);
    return 0;
}

int tls_clients_read(const struct tls_clients_config *config, struct tls_clients **out,
                     struct err *err)
{
    struct tls_clients *clients = mem_zero(1, sizeof *clients);
    assert(config->mode != TLS_CLIENT_OFF && config->authorities);
    assert(config->pattern && name_pattern_is_good(config->pattern));
    clients->pattern = mem_copy(config->pattern);
    int code = 0;
    if (gnutls_x509_trust_list_init(&clients->trusted, 0) < 0)
        code = err_fail(err, ERR_INTERNAL, "", "the list of authorities cannot be made");
    if (!code)
        code = authorities_read(clients, config->authorities, err);
    if (!code && config->revoked)
        code = revoked_read(clients, config->revoked, err);
    if (code) {
        tls_clients_free(clients);
        return code;
    }
    *out = clients;
    return 0;
}

void tls_clients_free(struct tls_clients *clients)
{
    if (!clients)
        return;
    if (clients->trusted)
        gnutls_x509_trust_list_deinit(clients->trusted, 1);
    mem_free(clients->pattern);
    mem_free(clients);
}

/* --- one client --- */

struct shown_chain {
    gnutls_x509_crt_t items[CHAIN_MAX];
    unsigned count;
};

static void chain_release(struct shown_chain *chain)
{
    for (unsigned i = 0; i < chain->count; i++)
        gnutls_x509_crt_deinit(chain->items[i]);
}

static void bad(struct tls_client *client, const char *text)
{
    client->state = TLS_CLIENT_BAD;
    client->user[0] = '\0';
    snprintf(client->text, sizeof client->text, "%s", text);
}

static bool chain_read(const gnutls_datum_t *shown, unsigned count, struct shown_chain *chain)
{
    for (unsigned i = 0; i < count && i < CHAIN_MAX; i++) {
        if (gnutls_x509_crt_init(&chain->items[i]) < 0)
            return false;
        chain->count++;
        if (gnutls_x509_crt_import(chain->items[i], &shown[i], GNUTLS_X509_FMT_DER) < 0)
            return false;
    }
    return count <= CHAIN_MAX;
}

/* "": it is good. */
static void chain_judge(const struct tls_clients *clients, struct shown_chain *chain, char *why,
                        size_t size)
{
    gnutls_typed_vdata_st purpose = {.type = GNUTLS_DT_KEY_PURPOSE_OID,
                                     .data = (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT};
    gnutls_datum_t words = {0};
    unsigned status = 0;
    int answer = gnutls_x509_trust_list_verify_crt2(clients->trusted, chain->items, chain->count,
                                                    &purpose, 1, 0, &status, NULL);
    why[0] = '\0';
    if (answer < 0) {
        snprintf(why, size, "the client certificate cannot be checked: %s",
                 gnutls_strerror(answer));
    } else if (status != 0) {
        answer = gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &words, 0);
        snprintf(why, size, "the client certificate is refused: %s",
                 answer < 0 ? gnutls_strerror(answer) : (const char *)words.data);
        gnutls_free(words.data);
    }
}

/* Another user than one before: it names nobody. */
static bool name_take(const struct tls_clients *clients, const char *kind, struct text name,
                      struct tls_client *client)
{
    struct text user;
    if (memchr(name.at, '\0', name.length) ||
        !name_pattern_match(clients->pattern, kind, name, &user))
        return true;
    if (user.length >= sizeof client->user || (client->user[0] && !text_is(user, client->user)))
        return false;
    memcpy(client->user, user.at, user.length);
    client->user[user.length] = '\0';
    return true;
}

static bool common_names_take(const struct tls_clients *clients, gnutls_x509_crt_t certificate,
                              struct tls_client *client)
{
    char name[NAME_MAX_BYTES];
    for (unsigned i = 0; i < NAMES_MAX; i++) {
        size_t size = sizeof name;
        int answer = gnutls_x509_crt_get_dn_by_oid(certificate, GNUTLS_OID_X520_COMMON_NAME, i, 0,
                                                   name, &size);
        if (answer == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
            return true;
        if (answer < 0 || !name_take(clients, "CN", (struct text){name, size}, client))
            return false;
    }
    return false;
}

static bool other_names_take(const struct tls_clients *clients, gnutls_x509_crt_t certificate,
                             struct tls_client *client)
{
    char name[NAME_MAX_BYTES];
    for (unsigned i = 0; i < NAMES_MAX; i++) {
        size_t size = sizeof name;
        int kind = gnutls_x509_crt_get_subject_alt_name(certificate, i, name, &size, NULL);
        if (kind == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
            return true;
        const char *word = kind == GNUTLS_SAN_RFC822NAME ? "email"
                           : kind == GNUTLS_SAN_URI      ? "uri"
                                                         : NULL;
        if (kind < 0 || (word && !name_take(clients, word, (struct text){name, size}, client)))
            return false;
    }
    return false;
}

static void names_take(const struct tls_clients *clients, gnutls_x509_crt_t certificate,
                       struct tls_client *client)
{
    const bool is_one = common_names_take(clients, certificate, client) &&
                        other_names_take(clients, certificate, client);
    if (is_one && client->user[0])
        return;
    client->user[0] = '\0';
    snprintf(client->text, sizeof client->text,
             is_one ? "the client certificate has no name like %.100s"
                    : "the client certificate has names that cannot be told apart by %.100s",
             clients->pattern);
}

void tls_client_look(const struct tls_clients *clients, struct gnutls_session_int *session,
                     struct tls_client *client)
{
    __attribute__((cleanup(chain_release))) struct shown_chain chain = {0};
    unsigned count = 0;
    const gnutls_datum_t *shown = gnutls_certificate_get_peers(session, &count);
    *client = (struct tls_client){.state = TLS_CLIENT_NONE};
    if (!shown || count == 0)
        return;
    if (!chain_read(shown, count, &chain)) {
        bad(client, "the client certificate cannot be read");
        return;
    }
    char why[sizeof client->text];
    chain_judge(clients, &chain, why, sizeof why);
    if (why[0]) {
        bad(client, why);
        return;
    }
    client->state = TLS_CLIENT_GOOD;
    client->expires_s = (int64_t)gnutls_x509_crt_get_expiration_time(chain.items[0]);
    names_take(clients, chain.items[0], client);
}
