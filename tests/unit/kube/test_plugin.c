/* Exec plugins that are real commands. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include "folder.h"
#include "kube/access.h"
#include "kube/plugin.h"

static struct arena arena;

static int setup(void **state)
{
    arena_init(&arena);
    return folder_setup(state);
}

static int teardown(void **state)
{
    arena_release(&arena);
    return folder_teardown(state);
}

#define SAYS(STATUS)                                                                               \
    "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/"                  \
    "v1\",\"status\":" STATUS "}"

/* A kubeconfig whose user has this after `exec: `. */
static int access_read(const char *exec, struct kube_access *access, struct err *err)
{
    folder_put("kubeconfig",
               arena_format(&arena,
                            "current-context: lab\n"
                            "contexts: [{name: lab, context: {cluster: c, user: u}}]\n"
                            "clusters:\n- name: c\n  cluster: {server: 'https://10.0.0.1:6443', "
                            "certificate-authority-data: 'Y2E=', tls-server-name: kubernetes, "
                            "proxy-url: 'http://proxy:1', insecure-skip-tls-verify: true, "
                            "extensions: [{name: other, extension: 1}, {name: "
                            "client.authentication.k8s.io/exec, extension: {audience: lab}}]}\n"
                            "users:\n- name: u\n  user:\n    exec: %s\n",
                            exec));
    return kube_access_of_file(arena_copy(&arena, text_of(in_folder("kubeconfig"))), "", &arena,
                               access, err);
}

static void script_put(const char *name, const char *lines)
{
    folder_put(name, arena_format(&arena, "#!/bin/sh\n%s\n", lines));
    assert_int_equal(chmod(in_folder(name), 0700), 0);
}

static const struct kube_access *with(const char *more)
{
    struct kube_access *access = ARENA_NEW(&arena, struct kube_access);
    assert_int_equal(
        access_read(arena_format(&arena,
                                 "{apiVersion: client.authentication.k8s.io/v1, command: ./login, "
                                 "interactiveMode: Never%s}",
                                 more),
                    access, NULL),
        0);
    return access;
}

static void it_gets_arguments_and_variables_and_says_a_token(void **state)
{
    (void)state;
    cleanup_credential struct kube_credential credential;
    struct err err = {0};
    script_put("login",
               "[ \"$1 $2\" = 'a b' ] && [ \"$LAB\" = one ] || exit 3\n"
               "case $KUBERNETES_EXEC_INFO in *'\"interactive\":false'*) ;; *) exit 4 ;; esac\n"
               "cat <<END\n" SAYS("{\"token\":\"secret\",\"expirationTimestamp\":"
                                  "\"2026-11-23T10:00:00+01:00\"}") "\nEND");
    setenv("LAB", "two", 1);
    assert_int_equal(kube_plugin_run(with(", args: [a, b], env: [{name: LAB, value: one}]"), false,
                                     0, &credential, &err),
                     0);
    unsetenv("LAB");
    assert_string_equal(buf_cstr(&credential.header), "Authorization: Bearer secret");
    assert_int_equal(credential.expires_ms, 1795424400000);
    assert_int_equal(credential.certificate.length, 0);
}

static void it_is_told_which_cluster(void **state)
{
    (void)state;
    cleanup_buf struct buf info = BUF_INIT;
    kube_plugin_info(with(", provideClusterInfo: true"), true, &info);
    assert_string_equal(
        buf_cstr(&info),
        "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\",\"spec\":{"
        "\"interactive\":true,\"cluster\":{\"server\":\"https://10.0.0.1:6443\","
        "\"tls-server-name\":\"kubernetes\",\"insecure-skip-tls-verify\":true,"
        "\"certificate-authority-data\":\"Y2E=\",\"proxy-url\":\"http://proxy:1\","
        "\"config\":{\"audience\":\"lab\"}}}}");
}

static void a_certificate_comes_with_its_key(void **state)
{
    (void)state;
    cleanup_credential struct kube_credential credential;
    assert_int_equal(kube_plugin_read(with(""),
                                      text_of(SAYS("{\"clientCertificateData\":\"C\\n\","
                                                   "\"clientKeyData\":\"K\\n\"}")),
                                      &credential, NULL),
                     0);
    assert_string_equal(buf_cstr(&credential.certificate), "C\n");
    assert_string_equal(buf_cstr(&credential.key), "K\n");
    assert_int_equal(credential.header.length, 0);
    assert_int_equal(credential.expires_ms, 0);
}

static void what_is_no_credential_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *answer, *says;
    } cases[] = {
        {"", "JSON"},
        {"[]", "JSON"},
        {"{\"kind\":\"Pod\"}", "no"},
        {"{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1beta1\"}",
         "another apiVersion"},
        {SAYS("{}"), "neither a token"},
        {SAYS("{\"token\":\"a\\nX: b\"}"), "characters"},
        {SAYS("{\"clientCertificateData\":\"C\"}"), "without its key"},
        {SAYS("{\"token\":\"a\",\"clientKeyData\":\"K\"}"), "key alone"},
        {SAYS("{\"token\":\"a\",\"expirationTimestamp\":\"soon\"}"), "no time"},
        {SAYS("{\"token\":\"a\",\"expirationTimestamp\":\"2026-11-23T10:00:00\"}"), "no time"},
        {SAYS("{\"token\":\"a\",\"expirationTimestamp\":\"2026-11-23T10:00:00.5\"}"), "no time"},
        {SAYS("{\"token\":\"a\",\"expirationTimestamp\":\"2026-11-23T10:00:00x01:00\"}"),
         "no time"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct kube_credential credential;
        struct err err = {0};
        assert_int_equal(kube_plugin_read(with(""), text_of(cases[i].answer), &credential, &err),
                         ERR_INVALID);
        assert_non_null(strstr(err.text, cases[i].says));
        assert_non_null(strstr(err.text, "/login"));
    }
}

static void a_failure_says_which_command_and_how(void **state)
{
    (void)state;
    struct kube_credential credential;
    struct err err = {0};
    assert_int_equal(
        kube_plugin_run(with(", installHint: get it from the lab"), false, 0, &credential, &err),
        ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, "/login"));
    assert_non_null(strstr(err.text, "get it from the lab"));
    script_put("login", "echo the session is over >&2; exit 7");
    assert_int_equal(kube_plugin_run(with(""), false, 0, &credential, &err), ERR_UNAVAILABLE);
    assert_non_null(strstr(err.text, "/login"));
    assert_non_null(strstr(err.text, "ends with code 7: the session is over"));
}

static void what_wants_a_terminal_needs_one(void **state)
{
    (void)state;
    struct kube_access access;
    struct kube_credential credential;
    struct err err = {0};
    assert_int_equal(access_read("{apiVersion: client.authentication.k8s.io/v1, command: login, "
                                 "interactiveMode: Always}",
                                 &access, &err),
                     0);
    assert_int_equal(kube_plugin_run(&access, false, 0, &credential, &err), ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "terminal"));
}

static void what_is_wrong_in_the_kubeconfig_is_named(void **state)
{
    (void)state;
#define V1 "{apiVersion: client.authentication.k8s.io/v1, "
    static const struct {
        const char *exec, *path;
    } cases[] = {
        {"{command: a}", "users.user.exec.apiVersion"},
        {"{apiVersion: client.authentication.k8s.io/v1alpha1, command: a}",
         "users.user.exec.apiVersion"},
        {V1 "interactiveMode: Never}", "users.user.exec.command"},
        {V1 "command: a}", "users.user.exec.interactiveMode"},
        {V1 "command: a, interactiveMode: Perhaps}", "users.user.exec.interactiveMode"},
        {V1 "command: a, interactiveMode: Never, args: [{}]}", "users.user.exec.args"},
        {V1 "command: a, interactiveMode: Never, env: [{value: x}]}", "users.user.exec.env"},
        {V1 "command: a, interactiveMode: Never, env: [{name: a=b}]}", "users.user.exec.env"},
        {V1 "command: a, interactiveMode: Never}\n    token: x", "users.user.exec"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct kube_access access;
        struct err err = {0};
        assert_int_equal(access_read(cases[i].exec, &access, &err), ERR_INVALID);
        assert_string_equal(err.path, cases[i].path);
    }
    struct kube_access access;
    assert_int_equal(access_read("{apiVersion: client.authentication.k8s.io/v1beta1, command: a}",
                                 &access, NULL),
                     0);
    assert_true(access.plugin->can_use_terminal);
    assert_string_equal(access.plugin->command, "a"); /* found in PATH */
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
static const struct CMUnitTest tests[] = {
    CASE(it_gets_arguments_and_variables_and_says_a_token),
    CASE(it_is_told_which_cluster),
    CASE(a_certificate_comes_with_its_key),
    CASE(what_is_no_credential_is_named),
    CASE(a_failure_says_which_command_and_how),
    CASE(what_wants_a_terminal_needs_one),
    CASE(what_is_wrong_in_the_kubeconfig_is_named),
};

UNIT_FILE(tests, NULL, NULL);
