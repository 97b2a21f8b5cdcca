#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "folder.h"
#include "kube/access.h"

static struct arena arena;

static const char *folder_root(void)
{
    return arena_copy(&arena, text_of(in_folder("")));
}

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

static const char *put(const char *name, const char *content)
{
    folder_put(name, content);
    return arena_copy(&arena, text_of(in_folder(name)));
}

static const char *config(const char *cluster, const char *user)
{
    return put("kubeconfig",
               arena_format(&arena,
                            "current-context: lab\n"
                            "contexts:\n"
                            "- {name: lab, context: {cluster: c1, user: u1, namespace: jobs}}\n"
                            "- {name: other, context: {cluster: c2, user: u1}}\n"
                            "clusters:\n"
                            "- name: c1\n  cluster: %s\n"
                            "- {name: c2, cluster: {server: 'http://127.0.0.1:8001//'}}\n"
                            "users:\n- name: u1\n  user: %s\n",
                            cluster, user));
}

static void a_kubeconfig_says_where_and_as_whom(void **state)
{
    (void)state;
    struct kube_access access;
    const char *path =
        config("{server: 'https://10.0.0.1:6443/', certificate-authority-data: 'Y2E=', "
               "tls-server-name: kubernetes, proxy-url: 'http://proxy:3128'}",
               "{token: secret}");
    assert_int_equal(kube_access_of_file(path, "", &arena, &access, NULL), 0);
    assert_string_equal(access.server, "https://10.0.0.1:6443");
    assert_true(text_is(access.ca, "ca"));
    assert_string_equal(access.server_name, "kubernetes");
    assert_string_equal(access.proxy, "http://proxy:3128");
    assert_string_equal(access.token, "secret");
    assert_string_equal(access.token_path, "");
    assert_string_equal(access.space, "jobs");
    assert_false(access.is_unchecked);
    assert_int_equal(access.certificate.length, 0);
    assert_int_equal(kube_access_of_file(path, "other", &arena, &access, NULL), 0);
    assert_string_equal(access.server, "http://127.0.0.1:8001");
    assert_string_equal(access.space, "");
}

static void files_lie_beside_the_kubeconfig(void **state)
{
    (void)state;
    struct kube_access access;
    put("ca.pem", "the ca");
    put("cert.pem", "the certificate");
    const char *key = put("key.pem", "the key");
    const char *path = config(
        "{server: 'https://h', certificate-authority: ca.pem, insecure-skip-tls-verify: true}",
        arena_format(&arena, "{client-certificate: cert.pem, client-key: %s, tokenFile: token}",
                     key));
    assert_int_equal(kube_access_of_file(path, "", &arena, &access, NULL), 0);
    assert_true(text_is(access.ca, "the ca"));
    assert_string_equal(access.ca_path, in_folder("ca.pem"));
    assert_true(text_is(access.certificate, "the certificate"));
    assert_true(text_is(access.key, "the key"));
    assert_string_equal(access.token_path, in_folder("token"));
    assert_true(access.is_unchecked);
}

/* As kubectl has it: the first file that has a name counts, with its own folder. */
static void several_files_are_one_kubeconfig(void **state)
{
    (void)state;
    struct kube_access access;
    struct err err = {0};
    folder_put("token", "unused");
    const char *first = put("first", "contexts:\n- {name: lab, context: {cluster: c, user: u}}\n"
                                     "users:\n- {name: u, user: {tokenFile: mine}}\n");
    const char *second =
        put("second", "current-context: lab\n"
                      "contexts:\n- {name: lab, context: {cluster: c, user: other, "
                      "namespace: hidden}}\n"
                      "clusters:\n- {name: c, cluster: {server: 'https://second'}}\n"
                      "users:\n- {name: u, user: {token: hidden, as: root}}\n");
    const char *third = put("third", "current-context: none\n"
                                     "clusters:\n- {name: c, cluster: {server: 'https://third'}}\n"
                                     "- {name: d, cluster: {server: 'https://d'}}\n");
    const char *list =
        arena_format(&arena, "%s:%s::%s:%s", first, in_folder("away"), second, third);
    assert_int_equal(kube_access_of_files(list, "", &arena, &access, &err), 0);
    assert_string_equal(access.server, "https://second");
    assert_string_equal(access.token_path, in_folder("mine"));
    assert_string_equal(access.token, "");
    assert_string_equal(access.space, "");
    assert_string_equal(access.path, first);
    list = arena_format(&arena, "%s:%s", third, first);
    assert_int_equal(kube_access_of_files(list, "lab", &arena, &access, &err), 0);
    assert_string_equal(access.server, "https://third");
    assert_int_equal(kube_access_of_files(list, "", &arena, &access, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "and 1 more kubeconfigs: they have no context"));
    list = arena_format(&arena, "%s:%s", in_folder("away"), in_folder("gone"));
    assert_int_equal(kube_access_of_files(list, "", &arena, &access, &err), ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, "no kubeconfig is there"));
    list = arena_format(&arena, "%s:%s", first, put("broken", "a: ["));
    assert_int_equal(kube_access_of_files(list, "", &arena, &access, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "broken is no YAML"));
    cleanup_buf struct buf many = BUF_INIT;
    for (int i = 0; i <= ACCESS_FILES_MAX; i++)
        buf_format(&many, "%s:", first);
    assert_int_equal(kube_access_of_files(buf_cstr(&many), "", &arena, &access, &err), ERR_TOO_BIG);
}

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *cluster, *user, *says;
        int code;
    } cases[] = {
        {"{}", "{}", "neither https:// nor http://", ERR_INVALID},
        {"{server: 'ftp://h'}", "{}", "neither https:// nor http://", ERR_INVALID},
        {"{server: 'https://h', certificate-authority-data: '?'}", "{}", "no base64", ERR_INVALID},
        {"{server: 'https://h', certificate-authority-data: 'YQ=x'}", "{}", "no base64",
         ERR_INVALID},
        {"{server: 'https://h', certificate-authority-data: 'YQ==='}", "{}", "no base64",
         ERR_INVALID},
        {"{server: 'https://h', certificate-authority-data: 'Y'}", "{}", "no base64", ERR_INVALID},
        {"{server: 'https://h', certificate-authority: none.pem}", "{}", "none.pem", ERR_NOT_FOUND},
        {"{server: 'https://h'}", "{client-key-data: YQ==}", "belong together", ERR_INVALID},
        {"{server: 'https://h'}", "{auth-provider: {name: x}}", "has auth-provider",
         ERR_UNSUPPORTED},
        {"{server: 'https://h'}", "{username: a, password: b}", "has username", ERR_UNSUPPORTED},
        {"{server: 'https://h'}", "{as: root}", "has as,", ERR_UNSUPPORTED},
        {"{server: 'https://h'}", "{token: t, as-groups: [g]}", "has as-groups,", ERR_UNSUPPORTED},
        {"{server: 'https://h'}", "{token: t, as-uid: u}", "has as-uid,", ERR_UNSUPPORTED},
        {"{server: 'https://h'}", "{token: t, as-user-extra: {a: [b]}}", "has as-user-extra,",
         ERR_UNSUPPORTED},
        {"{server: 'https://h'}", "{password: b}", "has password,", ERR_UNSUPPORTED},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct kube_access access;
        struct err err = {0};
        assert_int_equal(
            kube_access_of_file(config(cases[i].cluster, cases[i].user), "", &arena, &access, &err),
            cases[i].code);
        assert_non_null(strstr(err.text, cases[i].says));
    }
}

static void names_must_be_there(void **state)
{
    (void)state;
    static const struct {
        const char *content, *says;
    } cases[] = {
        {"a: [", "no YAML"},
        {"{}", "none is named"},
        {"current-context: x", "no context \"x\""},
        {"{current-context: x, contexts: [{name: x, context: {cluster: c}}]}", "no cluster \"c\""},
        {"{current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}], clusters: "
         "[{name: c, cluster: {server: 'https://h'}}]}",
         "no user \"u\""},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct kube_access access;
        struct err err = {0};
        assert_int_equal(
            kube_access_of_file(put("bad", cases[i].content), "", &arena, &access, &err),
            ERR_INVALID);
        assert_non_null(strstr(err.text, cases[i].says));
    }
    struct kube_access access;
    assert_int_equal(kube_access_of_file("/nonexistent/kubeconfig", "", &arena, &access, NULL),
                     ERR_NOT_FOUND);
}

static void a_pod_finds_its_cluster(void **state)
{
    (void)state;
    struct kube_access access;
    struct err err = {0};
    put("ca.crt", "the ca");
    put("namespace", "jobs\n");
    assert_int_equal(kube_access_of_pod("10.96.0.1", "443", folder_root(), &arena, &access, NULL),
                     0);
    assert_string_equal(access.server, "https://10.96.0.1:443");
    assert_string_equal(access.space, "jobs");
    assert_true(text_is(access.ca, "the ca"));
    assert_string_equal(access.ca_path, in_folder("ca.crt"));
    assert_string_equal(access.token_path, in_folder("token"));
    assert_int_equal(kube_access_of_pod("fd00::1", "443", folder_root(), &arena, &access, NULL), 0);
    assert_string_equal(access.server, "https://[fd00::1]:443");
    assert_int_equal(kube_access_of_pod("h", "443", "/nonexistent", &arena, &access, NULL),
                     ERR_NOT_FOUND);
    static const char *const absent[] = {NULL, ""};
    for (size_t i = 0; i < COUNT_OF(absent); i++) {
        assert_int_equal(kube_access_of_pod(absent[i], "443", folder_root(), &arena, &access, &err),
                         ERR_UNAVAILABLE);
        assert_int_equal(kube_access_of_pod("h", absent[i], folder_root(), &arena, &access, &err),
                         ERR_UNAVAILABLE);
        assert_non_null(strstr(err.text, "KUBERNETES_SERVICE_HOST"));
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_kubeconfig_says_where_and_as_whom),
    cmocka_unit_test(files_lie_beside_the_kubeconfig),
    cmocka_unit_test(several_files_are_one_kubeconfig),
    cmocka_unit_test(what_is_wrong_is_named),
    cmocka_unit_test(names_must_be_there),
    cmocka_unit_test(a_pod_finds_its_cluster),
};

UNIT_FILE(tests, setup, teardown);
