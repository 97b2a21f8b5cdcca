/* The certificate: made at the first start, read again when it has changed, refused when it is no
 * good. That it is spoken with is for the tests of the command line against a real server. */
#include "unit.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/http_tls.h"
#include "base/buf.h"
#include "base/err.h"
#include "folder.h"
#include "sys/file.h"

static void opened(const struct http_tls_config *config, char fingerprint[TLS_FINGERPRINT_SIZE])
{
    struct http_tls *tls = NULL;
    struct err err = {0};
    if (http_tls_open(config, &tls, &err) != 0)
        fail_msg("%s", err.text);
    http_tls_fingerprint(tls, fingerprint);
    http_tls_close(tls);
}

static void test_made_once(void **state)
{
    (void)state;
    struct http_tls_config config = {.folder = in_folder("tls")};
    char first[TLS_FINGERPRINT_SIZE], again[TLS_FINGERPRINT_SIZE];
    struct stat status;
    opened(&config, first);
    assert_int_equal(strncmp(first, "sha256//", 8), 0);
    assert_int_equal(strlen(first), 52);
    assert_int_equal(stat(in_folder("tls/key.pem"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    opened(&config, again);
    assert_string_equal(first, again);
}

/* As after a crash between the two files: they are made anew. */
static void test_half_made(void **state)
{
    (void)state;
    struct http_tls_config config = {.folder = in_folder("tls")};
    char first[TLS_FINGERPRINT_SIZE], again[TLS_FINGERPRINT_SIZE];
    opened(&config, first);
    assert_int_equal(unlink(in_folder("tls/certificate.pem")), 0);
    opened(&config, again);
    assert_string_not_equal(first, again);
}

static void copy(const char *from, const char *to, mode_t mode)
{
    struct buf bytes = BUF_INIT;
    assert_int_equal(file_read(in_folder(from), 1 << 20, &bytes, NULL), 0);
    assert_int_equal(file_write(in_folder(to), buf_as_text(&bytes), mode, NULL), 0);
    buf_release(&bytes);
}

static int refused(const char *certificate, const char *key, const char *part)
{
    struct http_tls_config config = {.certificate = in_folder(certificate), .key = in_folder(key)};
    struct http_tls *tls = NULL;
    struct err err = {0};
    int code = http_tls_open(&config, &tls, &err);
    assert_true(code < 0);
    if (!strstr(err.text, part))
        fail_msg("'%s' is not in: %s", part, err.text);
    return code;
}

static void test_refusals(void **state)
{
    (void)state;
    char fingerprint[TLS_FINGERPRINT_SIZE];
    opened(&(struct http_tls_config){.folder = in_folder("a")}, fingerprint);
    opened(&(struct http_tls_config){.folder = in_folder("b")}, fingerprint);
    assert_int_equal(refused("a/certificate.pem", "b/key.pem", "is not the key of"), ERR_INVALID);
    assert_int_equal(refused("a/none.pem", "a/key.pem", "none.pem"), ERR_NOT_FOUND);
    assert_int_equal(refused("a/key.pem", "a/key.pem", "the certificate"), ERR_INVALID);
    assert_int_equal(refused("a/certificate.pem", "a/certificate.pem", "chmod 600"), ERR_FORBIDDEN);
    copy("a/certificate.pem", "a/no-key.pem", 0600);
    assert_int_equal(refused("a/certificate.pem", "a/no-key.pem", "the key"), ERR_INVALID);
}

/* As a cluster mounts a secret: root's, for a group. Only root can try it. */
static void test_a_key_that_root_gives_to_a_group(void **state)
{
    (void)state;
    enum { OTHER = 10001 };
    char fingerprint[TLS_FINGERPRINT_SIZE];
    if (geteuid() != 0)
        skip();
    opened(&(struct http_tls_config){.folder = in_folder("a")}, fingerprint);
    copy("a/certificate.pem", "a/public.pem", 0644);
    copy("a/key.pem", "a/given.pem", 0640);
    assert_int_equal(refused("a/public.pem", "a/given.pem", "chmod 600"), ERR_FORBIDDEN);
    assert_int_equal(chown(in_folder("a/given.pem"), 0, OTHER), 0);
    assert_int_equal(chmod(in_folder("a"), 0755), 0);
    assert_int_equal(chmod(in_folder(""), 0755), 0);
    assert_int_equal(setegid(OTHER), 0);
    assert_int_equal(seteuid(OTHER), 0);
    opened(&(struct http_tls_config){.certificate = in_folder("a/public.pem"),
                                     .key = in_folder("a/given.pem")},
           fingerprint);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(setegid(0), 0);
    assert_int_equal(chmod(in_folder("a/given.pem"), 0644), 0);
    assert_int_equal(refused("a/public.pem", "a/given.pem", "chmod 600"), ERR_FORBIDDEN);
}

/* A renewed certificate is shown from then on; what is no good changes nothing. */
static void test_reload(void **state)
{
    (void)state;
    char first[TLS_FINGERPRINT_SIZE], second[TLS_FINGERPRINT_SIZE], now[TLS_FINGERPRINT_SIZE];
    opened(&(struct http_tls_config){.folder = in_folder("a")}, first);
    opened(&(struct http_tls_config){.folder = in_folder("b")}, second);
    copy("a/certificate.pem", "certificate.pem", 0644);
    copy("a/key.pem", "key.pem", 0600);
    struct http_tls_config config = {.certificate = in_folder("certificate.pem"),
                                     .key = in_folder("key.pem")};
    struct http_tls *tls, *other;
    struct err err;
    assert_int_equal(http_tls_open(&config, &tls, &err), 0);
    assert_int_equal(http_tls_open(&config, &other, &err), ERR_CONFLICT);
    copy("b/certificate.pem", "certificate.pem", 0644);
    assert_int_equal(http_tls_reload(tls, &err), ERR_INVALID);
    http_tls_fingerprint(tls, now);
    assert_string_equal(now, first);
    copy("b/key.pem", "key.pem", 0600);
    assert_int_equal(http_tls_reload(tls, &err), 0);
    http_tls_fingerprint(tls, now);
    assert_string_equal(now, second);
    http_tls_close(tls);
}

/* So many times the same certificate, as a chain. */
static void chain_put(const char *name, int count)
{
    struct buf one = BUF_INIT, chain = BUF_INIT;
    assert_int_equal(file_read(in_folder("a/certificate.pem"), 1 << 20, &one, NULL), 0);
    for (int i = 0; i < count; i++)
        buf_text(&chain, buf_as_text(&one));
    assert_int_equal(file_write(in_folder(name), buf_as_text(&chain), 0644, NULL), 0);
    buf_release(&one);
    buf_release(&chain);
}

/* The longest chain is read and released whole, a longer one is refused. */
static void test_the_longest_chain(void **state)
{
    (void)state;
    char first[TLS_FINGERPRINT_SIZE], now[TLS_FINGERPRINT_SIZE];
    opened(&(struct http_tls_config){.folder = in_folder("a")}, first);
    chain_put("longest.pem", 16);
    chain_put("longer.pem", 17);
    opened(&(struct http_tls_config){.certificate = in_folder("longest.pem"),
                                     .key = in_folder("a/key.pem")},
           now);
    assert_string_equal(now, first);
    assert_int_equal(
        refused("longer.pem", "a/key.pem", "longer.pem holds more than 16 certificates"),
        ERR_TOO_BIG);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_made_once, folder_setup, folder_teardown),
    cmocka_unit_test_setup_teardown(test_half_made, folder_setup, folder_teardown),
    cmocka_unit_test_setup_teardown(test_refusals, folder_setup, folder_teardown),
    cmocka_unit_test_setup_teardown(test_a_key_that_root_gives_to_a_group, folder_setup,
                                    folder_teardown),
    cmocka_unit_test_setup_teardown(test_reload, folder_setup, folder_teardown),
    cmocka_unit_test_setup_teardown(test_the_longest_chain, folder_setup, folder_teardown),
};
UNIT_FILE(tests, NULL, NULL);
