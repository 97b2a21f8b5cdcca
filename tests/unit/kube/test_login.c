/* What a server is shown, as files and a plugin change. */
#include "unit.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/err.h"
#include "base/memory.h"
#include "folder.h"
#include "kube/access.h"
#include "kube/login.h"
#include "sys/clock.h"

enum { LIMIT_S = 30 };

static atomic_llong stopped_ms; /* the clock stands there; 0: it goes */

int64_t __real_clock_monotonic_ms(void);
int64_t __wrap_clock_monotonic_ms(void);
int64_t __wrap_clock_monotonic_ms(void)
{
    const int64_t ms = atomic_load(&stopped_ms);
    return ms ? ms : __real_clock_monotonic_ms();
}

/* No pause is over before the end of the test. */
static void clock_stop(void)
{
    atomic_store(&stopped_ms, clock_monotonic_ms());
}

static sem_t has_changed;
static char script[512];

static void changed(void *context)
{
    (void)context;
    sem_post(&has_changed);
}

static int setup(void **state)
{
    sem_init(&has_changed, 0, 0);
    return folder_setup(state);
}

static int teardown(void **state)
{
    atomic_store(&stopped_ms, 0);
    sem_destroy(&has_changed);
    return folder_teardown(state);
}

/* The limit only ends a test that has failed. */
static void change_await(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LIMIT_S;
    assert_int_equal(sem_timedwait(&has_changed, &until), 0);
}

static struct kube_access nobody(void)
{
    return (struct kube_access){.token = "",
                                .token_path = "",
                                .certificate_path = "",
                                .key_path = "",
                                .ca_path = "",
                                .server = "https://h",
                                .server_name = "",
                                .proxy = "",
                                .path = "kubeconfig"};
}

/* The plugin writes "x" into the file `runs` each time, says what the file `says` has, and waits
 * first until it can read the pipe `go`, when that is there. */
static struct kube_plugin plugin(const char *const arguments[4])
{
    static const char *const none[] = {NULL};
    return (struct kube_plugin){.command = "sh",
                                .arguments = arguments,
                                .env = none,
                                .version = ACCESS_PLUGIN_V1,
                                .hint = "",
                                .cluster_config = ""};
}

static const char *const *script_make(void)
{
    static const char *arguments[4];
    snprintf(script, sizeof script,
             "cd '%s' && printf x >>runs; [ ! -p go ] || read word <go; . ./says", in_folder(""));
    arguments[0] = "sh";
    arguments[1] = "-c";
    arguments[2] = script;
    return arguments;
}

static void says(const char *token, const char *more)
{
    char text[400];
    snprintf(text, sizeof text,
             "echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/"
             "v1\",\"status\":{\"token\":\"%s\"%s}}'",
             token, more);
    folder_put("says", text);
}

static size_t runs(void)
{
    struct stat file;
    return stat(in_folder("runs"), &file) == 0 ? (size_t)file.st_size : 0;
}

static void is_token(struct kube_login *login, const char *token)
{
    cleanup_credential struct kube_credential credential;
    char header[100];
    assert_int_equal(kube_login_wait(login, &credential, NULL), 0);
    snprintf(header, sizeof header, "Authorization: Bearer %s", token);
    assert_string_equal(buf_cstr(&credential.header), header);
}

static uint64_t number_of(struct kube_login *login)
{
    cleanup_credential struct kube_credential credential;
    assert_int_equal(kube_login_wait(login, &credential, NULL), 0);
    return credential.number;
}

static void a_token_in_a_file_is_read_again_when_it_is_refused(void **state)
{
    (void)state;
    struct kube_access access = nobody();
    struct kube_login *login;
    char path[200];
    folder_put("token", "one\n");
    snprintf(path, sizeof path, "%s", in_folder("token"));
    access.token_path = path;
    assert_int_equal(kube_login_new(&access, false, NULL, NULL, &login, NULL), 0);
    is_token(login, "one");
    folder_put("token", "two\n");
    is_token(login, "one"); /* it is good for a minute */
    const uint64_t first = number_of(login);
    kube_login_refused(login, first);
    is_token(login, "two");
    assert_int_not_equal(number_of(login), first);
    kube_login_free(login);
}

static void certificates_in_files_are_read_again_as_well(void **state)
{
    (void)state;
    struct kube_access access = nobody();
    struct kube_login *login;
    char certificate[200], key[200];
    folder_put("cert", "one");
    folder_put("key", "one's");
    snprintf(certificate, sizeof certificate, "%s", in_folder("cert"));
    snprintf(key, sizeof key, "%s", in_folder("key"));
    access.certificate_path = certificate;
    access.key_path = key;
    assert_int_equal(kube_login_new(&access, false, NULL, NULL, &login, NULL), 0);
    const uint64_t first = number_of(login);
    kube_login_refused(login, first);
    assert_int_equal(number_of(login), first); /* they are as they were */
    folder_put("cert", "two");
    folder_put("key", "two's");
    kube_login_refused(login, first);
    cleanup_credential struct kube_credential credential;
    assert_int_equal(kube_login_wait(login, &credential, NULL), 0);
    assert_string_equal(buf_cstr(&credential.certificate), "two");
    assert_string_equal(buf_cstr(&credential.key), "two's");
    kube_login_free(login);
}

static void trusts(struct kube_login *login, const char *ca)
{
    cleanup_credential struct kube_credential credential;
    assert_int_equal(kube_login_wait(login, &credential, NULL), 0);
    assert_string_equal(buf_cstr(&credential.ca), ca);
}

/* With a token, and with a plugin. */
static void whom_to_trust_is_read_again_when_the_server_is_not_trusted(void **state)
{
    (void)state;
    struct kube_access access = nobody();
    const struct kube_plugin command = plugin(script_make());
    char path[200];
    snprintf(path, sizeof path, "%s", in_folder("ca"));
    access.ca_path = path;
    access.ca = TEXT("-----BEGIN one");
    access.token = "token";
    says("token", "");
    for (int round = 0; round < 2; round++) {
        struct kube_login *login;
        folder_put("ca", "-----BEGIN two");
        assert_int_equal(kube_login_new(&access, false, NULL, NULL, &login, NULL), 0);
        const uint64_t first = number_of(login);
        trusts(login, ""); /* as the access says, for a minute */
        kube_login_distrusted(login);
        trusts(login, "-----BEGIN two");
        folder_put("ca", "-----BEGIN three");
        trusts(login, "-----BEGIN two");
        folder_put("ca", ""); /* it is being written */
        kube_login_distrusted(login);
        trusts(login, "-----BEGIN two");
        assert_int_equal(remove(path), 0);
        kube_login_distrusted(login);
        trusts(login, "-----BEGIN two");
        folder_put("ca", "-----BEGIN one");
        kube_login_distrusted(login);
        trusts(login, "");
        assert_int_equal(number_of(login), first); /* who asks has not changed */
        kube_login_free(login);
        access.plugin = &command;
    }
}

static void a_file_that_is_missing_is_named(void **state)
{
    (void)state;
    struct kube_access access = nobody();
    struct kube_login *login;
    struct kube_credential credential;
    struct err err = {0};
    uint32_t again_ms;
    access.token_path = "/nonexistent/token";
    assert_int_equal(kube_login_new(&access, false, NULL, NULL, &login, NULL), 0);
    assert_int_equal(kube_login_take(login, &credential, &again_ms, &err), ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, "/nonexistent/token"));
    assert_true(again_ms > 0);
    kube_login_free(login);
}

static void a_plugin_runs_once_until_what_it_says_is_refused(void **state)
{
    (void)state;
    struct kube_access access = nobody();
    const struct kube_plugin command = plugin(script_make());
    struct kube_login *login;
    struct kube_credential credential;
    uint32_t again_ms;
    access.plugin = &command;
    says("one", "");
    assert_int_equal(mkfifo(in_folder("go"), 0600), 0);
    assert_int_equal(kube_login_new(&access, false, changed, NULL, &login, NULL), 0);
    /* nobody waits for it */
    assert_int_equal(kube_login_take(login, &credential, &again_ms, NULL), ERR_BUSY);
    assert_int_equal(kube_login_take(login, &credential, &again_ms, NULL), ERR_BUSY);
    folder_put("go", "on\n");
    change_await();
    is_token(login, "one");
    is_token(login, "one");
    assert_int_equal(runs(), 1);
    /* what is refused has been replaced already: nothing happens */
    kube_login_refused(login, number_of(login) + 1);
    is_token(login, "one");
    says("two", "");
    assert_int_equal(remove(in_folder("go")), 0);
    const uint64_t refused = number_of(login);
    clock_stop();
    kube_login_refused(login, refused);
    /* refused as soon as it was there: after a pause */
    struct err err = {0};
    assert_int_equal(kube_login_take(login, &credential, &again_ms, &err), ERR_UNAVAILABLE);
    assert_non_null(strstr(err.text, "refuses"));
    assert_true(again_ms > 0 && again_ms <= 1000);
    assert_int_equal(runs(), 1);
    kube_login_free(login);
}

static void what_has_expired_is_asked_for_anew(void **state)
{
    (void)state;
    struct kube_access access = nobody();
    const struct kube_plugin command = plugin(script_make());
    struct kube_login *login;
    struct kube_credential credential;
    struct err err = {0};
    access.plugin = &command;
    clock_stop();
    says("old", ",\"expirationTimestamp\":\"2001-01-01T00:00:00Z\"");
    assert_int_equal(kube_login_new(&access, false, changed, NULL, &login, NULL), 0);
    assert_int_equal(kube_login_wait(login, &credential, &err), ERR_UNAVAILABLE);
    assert_non_null(strstr(err.text, "expired already, by the clock of this machine"));
    kube_login_free(login);
    says("good", ",\"expirationTimestamp\":\"2101-01-01T00:00:00Z\"");
    assert_int_equal(kube_login_new(&access, false, changed, NULL, &login, NULL), 0);
    is_token(login, "good");
    kube_login_free(login);
    assert_int_equal(runs(), 2);
}

static void a_plugin_that_fails_is_told_and_tried_later(void **state)
{
    (void)state;
    struct kube_access access = nobody();
    const struct kube_plugin command = plugin(script_make());
    struct kube_login *login;
    struct kube_credential credential;
    struct err err = {0};
    uint32_t again_ms;
    access.plugin = &command;
    clock_stop();
    folder_put("says", "echo no session >&2; exit 3");
    assert_int_equal(kube_login_new(&access, false, changed, NULL, &login, NULL), 0);
    assert_int_equal(kube_login_wait(login, &credential, &err), ERR_UNAVAILABLE);
    assert_non_null(strstr(err.text, "ends with code 3: no session"));
    assert_int_equal(kube_login_take(login, &credential, &again_ms, &err), ERR_UNAVAILABLE);
    assert_true(again_ms > 0 && again_ms <= 1000);
    assert_int_equal(runs(), 1);
    kube_login_free(login);
}

static void the_end_does_not_wait_for_a_plugin(void **state)
{
    (void)state;
    struct kube_access access = nobody();
    const struct kube_plugin command = plugin(script_make());
    struct kube_login *login;
    struct kube_credential credential;
    uint32_t again_ms;
    access.plugin = &command;
    assert_int_equal(mkfifo(in_folder("go"), 0600), 0); /* nobody ever writes */
    assert_int_equal(kube_login_new(&access, false, changed, NULL, &login, NULL), 0);
    assert_int_equal(kube_login_take(login, &credential, &again_ms, NULL), ERR_BUSY);
    const time_t begin = time(NULL);
    kube_login_free(login);
    assert_true(time(NULL) - begin < LIMIT_S); /* not PLUGIN_MS */
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
static const struct CMUnitTest tests[] = {
    CASE(a_token_in_a_file_is_read_again_when_it_is_refused),
    CASE(certificates_in_files_are_read_again_as_well),
    CASE(whom_to_trust_is_read_again_when_the_server_is_not_trusted),
    CASE(a_file_that_is_missing_is_named),
    CASE(a_plugin_runs_once_until_what_it_says_is_refused),
    CASE(what_has_expired_is_asked_for_anew),
    CASE(a_plugin_that_fails_is_told_and_tried_later),
    CASE(the_end_does_not_wait_for_a_plugin),
};

UNIT_FILE(tests, NULL, NULL);
