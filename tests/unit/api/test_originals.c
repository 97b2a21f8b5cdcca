/* How far it is to the platforms whose clients come here: each of their paths by its method, and
 * that something of this API serves it. What is not served stands in the table with the reason.
 *
 * Covers: src/api/routes.c
 */
#include "unit.h"

#include <stdio.h>

#include "api/http.h"
#include "api/route.h"
#include "base/err.h"
#include "base/memory.h"

static const struct origin {
    const char *name;
    const char *routes; /* "METHOD /path …", a line each; '-' before what is not served */
} ORIGINS[] = {
    {"OpenPAI 1.8",
     "GET /api/v2\nGET /api/v2/info\nGET /api/v2/authn/info\nPOST /api/v2/authn/basic/login\n"
     "DELETE /api/v2/authn/basic/logout\nGET /api/v2/authn/oidc/login\n"
     "GET /api/v2/authn/oidc/return\nPOST /api/v2/authn/oidc/return\nGET "
     "/api/v2/authn/oidc/logout\n"
     "GET /api/v2/tokens\nPOST /api/v2/tokens\nPOST /api/v2/tokens/application\n"
     "GET /api/v2/tokens/check\nDELETE /api/v2/tokens/t\n"
     "GET /api/v2/users\nPOST /api/v2/users\nPUT /api/v2/users\nPUT /api/v2/users/me\n"
     "GET /api/v2/users/u\nDELETE /api/v2/users/u\nPUT /api/v2/users/u/grouplist\n"
     "PUT /api/v2/users/u/group\nDELETE /api/v2/users/u/group\nPUT /api/v2/users/u/extension\n"
     "PUT /api/v2/users/u/virtualcluster\nPUT /api/v2/users/u/password\nPUT /api/v2/users/u/email\n"
     "PUT /api/v2/users/u/admin\n"
     "GET /api/v2/groups\nPOST /api/v2/groups\nPUT /api/v2/groups\nGET /api/v2/groups/g\n"
     "DELETE /api/v2/groups/g\nGET /api/v2/groups/g/userlist\nPUT /api/v2/groups/g/extension\n"
     "PUT /api/v2/groups/g/extension/acls/admin\nPUT /api/v2/groups/g/description\n"
     "PUT /api/v2/groups/g/externalname\n"
     "GET /api/v2/virtual-clusters\nGET /api/v2/virtual-clusters/v\nPUT "
     "/api/v2/virtual-clusters/v\n"
     "DELETE /api/v2/virtual-clusters/v\nPUT /api/v2/virtual-clusters/v/status\n"
     "GET /api/v2/cluster/sku-types\nGET /api/v2/storages\nGET /api/v2/storages/s\n"
     "GET /api/v2/storage/config\nGET /api/v2/storage/config/s\nGET /api/v2/storage/server\n"
     "GET /api/v2/storage/server/s\n"
     "GET /api/v2/jobs\nPOST /api/v2/jobs\nGET /api/v2/jobs/u~j\nGET /api/v2/jobs/u~j/attempts/0\n"
     "GET /api/v2/jobs/u~j/config\nPUT /api/v2/jobs/u~j/executionType\nPUT /api/v2/jobs/u~j/tag\n"
     "DELETE /api/v2/jobs/u~j/tag\nGET /api/v2/jobs/u~j/events\n"
     "GET /api/v2/jobs/u~j/attempts/0/taskRoles/r/taskIndex/0/attempts\n"
     "GET /api/v2/jobs/u~j/attempts/0/taskRoles/r/taskIndex/0/attempts/0/logs\n"
     "GET /api/v2/jobs/u~j/job-attempts/healthz\nGET /api/v2/jobs/u~j/job-attempts\n"
     "GET /api/v2/jobs/u~j/job-attempts/0\nGET /api/v2/jobs/u~j/ssh\nGET /api/v2/alerts\n"
     "GET /api/v2/kubernetes/nodes\nGET /api/v2/kubernetes/pods\n"
     "GET /api/internal/tail-logs/name\n"
     "GET /api/v1\nGET /api/v1/authn/info\nPOST /api/v1/authn/basic/login\n"
     "DELETE /api/v1/authn/basic/logout\nGET /api/v1/authn/oidc/login\n"
     "GET /api/v1/authn/oidc/return\nPOST /api/v1/authn/oidc/return\nGET "
     "/api/v1/authn/oidc/logout\n"
     "GET /api/v1/token\nPOST /api/v1/token\nPOST /api/v1/token/application\n"
     "GET /api/v1/token/check\nDELETE /api/v1/token/t\nGET /api/v1/user/u\n"
     "GET /api/v1/kubernetes/nodes\nGET /api/v1/kubernetes/pods"},
    {"OpenPAI's older names",
     "GET /api/v2/user\nPOST /api/v2/user\nPUT /api/v2/user\nPUT /api/v2/user/me\n"
     "GET /api/v2/user/u\nDELETE /api/v2/user/u\nPUT /api/v2/user/u/grouplist\n"
     "PUT /api/v2/user/u/group\nDELETE /api/v2/user/u/group\nPUT /api/v2/user/u/extension\n"
     "PUT /api/v2/user/u/virtualcluster\nPUT /api/v2/user/u/password\nPUT /api/v2/user/u/email\n"
     "PUT /api/v2/user/u/admin\nGET /api/v2/group\nPOST /api/v2/group\nPUT /api/v2/group\n"
     "GET /api/v2/group/g\nDELETE /api/v2/group/g\nGET /api/v2/group/g/userlist\n"
     "PUT /api/v2/group/g/extension\nPUT /api/v2/group/g/extension/acls/admin\n"
     "PUT /api/v2/group/g/description\nPUT /api/v2/group/g/externalname"},
    {"PAI 0.1 to 0.14, QIZHI",
     "GET /api/v1\nPOST /api/auth\nPUT /api/auth\nPOST /api/v1/auth\nPUT /api/v1/auth\n"
     "GET /api/job\nGET /api/job/j\nPUT /api/job/j\nDELETE /api/job/j\n"
     "POST /api/v1/token\nPUT /api/v1/user\nDELETE /api/v1/user\nGET /api/v1/user\n"
     "PUT /api/v1/user/u/virtualClusters\nPUT /api/v1/user/u/githubPAT\nGET /api/v1/user/u\n"
     "GET /api/v1/jobs\nPOST /api/v1/jobs\nGET /api/v1/jobs/j\nPUT /api/v1/jobs/j\n"
     "DELETE /api/v1/jobs/j\nPUT /api/v1/jobs/j/executionType\nGET /api/v1/jobs/j/config\n"
     "GET /api/v1/jobs/j/ssh\nGET /api/v1/user/u/jobs\nPOST /api/v1/user/u/jobs\n"
     "GET /api/v1/user/u/jobs/j\nPUT /api/v1/user/u/jobs/j\nDELETE /api/v1/user/u/jobs/j\n"
     "PUT /api/v1/user/u/jobs/j/executionType\nGET /api/v1/user/u/jobs/j/config\n"
     "GET /api/v1/user/u/jobs/j/ssh\nGET /api/v1/virtual-clusters\nGET /api/v1/virtual-clusters/v\n"
     "PUT /api/v1/virtual-clusters/v\nPUT /api/v1/virtual-clusters/v/status\n"
     "DELETE /api/v1/virtual-clusters/v\nGET /api/v1/kubernetes/api/v1/nodes\n"
     "GET /api/v1/kubernetes/api/v1/nodes/n\nGET /api/v1/kubernetes/api/v1/pods\n"
     "GET /api/v1/kubernetes/api/v1/namespaces/n/pods\n"
     "GET /api/v2/jobs\nPOST /api/v2/jobs\nGET /api/v2/jobs/j\nPUT /api/v2/jobs/j\n"
     "DELETE /api/v2/jobs/j\n"
     /* they committed to a repository on GitHub, with a token that users left on the server */
     "-GET /api/v2/template\n-POST /api/v2/template\n-GET /api/v2/template/job\n"
     "-GET /api/v2/template/job/n"},
};

static enum http_method method_of(struct text name)
{
    static const enum http_method methods[] = {HTTP_GET, HTTP_POST, HTTP_PUT, HTTP_DELETE};
    for (size_t i = 0; i < COUNT_OF(methods); i++)
        if (text_is(name, http_method_name(methods[i])))
            return methods[i];
    fail_msg("%.*s is no method", TEXT_ARG(name));
    return HTTP_GET;
}

static bool is_served(enum http_method method, struct text path)
{
    struct exchange exchange;
    struct route_match match;
    struct err err;
    exchange_init(&exchange);
    exchange.method = method;
    assert_int_equal(exchange_target(&exchange, path, &err), 0);
    route_find(ROUTES, ROUTE_COUNT, &exchange, &match);
    exchange_release(&exchange);
    return match.route != NULL;
}

static void test_distance(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(ORIGINS); i++) {
        size_t served = 0, count = 0;
        struct text rest = text_of(ORIGINS[i].routes);
        while (rest.at) {
            struct text path = text_cut(&rest, '\n');
            bool is_left_out = path.at[0] == '-';
            path.at += is_left_out;
            path.length -= is_left_out;
            enum http_method method = method_of(text_cut(&path, ' '));
            bool is_found = is_served(method, path);
            if (is_found == is_left_out)
                fail_msg("%s: %s %.*s is %s", ORIGINS[i].name, http_method_name(method),
                         TEXT_ARG(path), is_found ? "served" : "not served");
            served += is_found;
            count++;
        }
        printf("%s: %zu of %zu routes\n", ORIGINS[i].name, served, count);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_distance),
};
UNIT_FILE(tests, NULL, NULL);
