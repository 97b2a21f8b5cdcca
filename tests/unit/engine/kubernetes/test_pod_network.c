#include "unit.h"

#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "engine/kubernetes/pod_network.h"

static const char *const lab[] = {"lab", "vision"};
static const char *const every[] = {"*"};

static void what_goes_together(void **state)
{
    static const struct {
        struct pod_network network;
        const char *path; /* of what does not */
    } cases[] = {
        {{0}, NULL},
        {{.mode = KUBE_NETWORK_POD}, NULL},
        {{.mode = KUBE_NETWORK_POD, .users = KUBE_USERS_REQUIRED}, NULL},
        {{.mode = KUBE_NETWORK_POD,
          .users = KUBE_USERS_AUTO,
          .host_clusters = lab,
          .host_cluster_count = 2},
         NULL},
        {{.users = KUBE_USERS_AUTO}, "engine.kubernetes.userNamespaces"},
        {{.host_clusters = lab, .host_cluster_count = 1}, "engine.kubernetes.hostNetwork"},
        {{.mode = KUBE_NETWORK_POD,
          .users = KUBE_USERS_REQUIRED,
          .host_clusters = lab,
          .host_cluster_count = 1},
         "engine.kubernetes.hostNetwork"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct err err = {0};
        const int code = pod_network_check(&cases[i].network, &err);
        assert_int_equal(code, cases[i].path ? ERR_INVALID : 0);
        assert_string_equal(err.path, cases[i].path ? cases[i].path : "");
    }
}

static void who_is_in_the_network_of_its_node(void **state)
{
    const struct pod_network host = {0}, pod = {.mode = KUBE_NETWORK_POD};
    const struct pod_network some = {
        .mode = KUBE_NETWORK_POD, .host_clusters = lab, .host_cluster_count = 2};
    const struct pod_network all = {
        .mode = KUBE_NETWORK_POD, .host_clusters = every, .host_cluster_count = 1};
    (void)state;
    assert_true(pod_network_is_host(&host, "lab"));
    assert_false(pod_network_is_host(&pod, "lab"));
    assert_true(pod_network_is_host(&some, "lab"));
    assert_true(pod_network_is_host(&some, "vision"));
    assert_false(pod_network_is_host(&some, "default"));
    assert_false(pod_network_is_host(&some, ""));
    assert_true(pod_network_is_host(&all, "default"));
}

static void who_has_user_ids_of_its_own(void **state)
{
    struct pod_network network = {
        .mode = KUBE_NETWORK_POD, .host_clusters = lab, .host_cluster_count = 1};
    (void)state;
    assert_false(pod_network_has_own_users(&network, "default", true));
    network.users = KUBE_USERS_AUTO;
    assert_true(pod_network_has_own_users(&network, "default", true));
    assert_false(pod_network_has_own_users(&network, "default", false));
    assert_false(pod_network_has_own_users(&network, "lab", true));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_goes_together),
    cmocka_unit_test(who_is_in_the_network_of_its_node),
    cmocka_unit_test(who_has_user_ids_of_its_own),
};
UNIT_FILE(tests, NULL, NULL);
