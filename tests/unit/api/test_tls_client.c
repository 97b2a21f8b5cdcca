/* Certificates of clients: what cannot be read. That good ones
 * are taken and bad ones refused is for the tests of the command line against a real server. */
#include "unit.h"

#include <string.h>

#include "api/http_tls.h"
#include "api/tls_client.h"
#include "base/err.h"
#include "folder.h"

static void refused(const char *authorities, const char *revoked, const char *part, int expected)
{
    const struct tls_clients_config config = {.mode = TLS_CLIENT_OPTIONAL,
                                              .authorities = in_folder(authorities),
                                              .revoked = revoked ? in_folder(revoked) : NULL,
                                              .pattern = "CN:{user}"};
    struct tls_clients *clients = NULL;
    struct err err = {0};
    assert_int_equal(tls_clients_read(&config, &clients, &err), expected);
    if (expected && !strstr(err.text, part))
        fail_msg("'%s' is not in: %s", part, err.text);
    tls_clients_free(clients);
}

static void test_files(void **state)
{
    const struct http_tls_config made = {.folder = in_folder("tls")};
    struct http_tls *tls;
    (void)state;
    assert_int_equal(http_tls_open(&made, &tls, NULL), 0);
    assert_false(http_tls_wants_client(tls));
    http_tls_close(tls);
    folder_put("empty.pem", "");
    refused("tls/certificate.pem", NULL, "", 0);
    refused("none.pem", NULL, "none.pem does not exist", ERR_NOT_FOUND);
    refused("empty.pem", NULL, "holds no certificate of an authority", ERR_INVALID);
    refused("tls/key.pem", NULL, "holds no certificate of an authority", ERR_INVALID);
    refused("tls/certificate.pem", "none.pem", "none.pem does not exist", ERR_NOT_FOUND);
    refused("tls/certificate.pem", "tls/certificate.pem", "holds no revocation list", ERR_INVALID);
    struct http_tls_config asks = {
        .folder = in_folder("tls"),
        .clients = {TLS_CLIENT_REQUIRED, in_folder("empty.pem"), NULL, "CN:{user}"}};
    struct err err;
    assert_int_equal(http_tls_open(&asks, &tls, &err), ERR_INVALID);
    asks.clients.authorities = in_folder("tls/certificate.pem");
    assert_int_equal(http_tls_open(&asks, &tls, &err), 0);
    assert_true(http_tls_wants_client(tls));
    http_tls_close(tls);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_files, folder_setup, folder_teardown),
};
UNIT_FILE(tests, NULL, NULL);
