/* Who may call what: every route of the API by every kind of caller.
 *
 * One table: a row for each route, with the status that each kind of caller gets. A route without
 * a row fails the test. Each call is made with fresh things (a running job of alice's, a token), so
 * that no row depends on another.
 *
 * Covers: src/api/routes.c, src/api/app.c */
#include "unit.h"
#include "world.h"

#include <sodium.h>
#include <stdio.h>
#include <time.h>

#include "api/route.h"
#include "api/token.h"
#include "base/memory.h"

enum caller_kind {
    NOBODY,
    OWNER, /* alice, whose job and profile it is */
    OTHER, /* bob */
    ADMIN,
    OWNER_APPLICATION, /* application tokens, of the usual scope … */
    ADMIN_APPLICATION,
    OWNER_READ, /* … and of the one that is named */
    OWNER_SUBMIT,
    OWNER_ADMIN, /* a scope gives nothing that the user may not */
    ADMIN_READ,  /* and one that is small nothing of what the user may as an admin */
    ADMIN_ADMIN,
    LAB_ADMIN,  /* carol, of the group `lab` */
    LAB_MEMBER, /* dora, who is in it */
    EXPECTED_COUNT,
    /* what these show is worth no more than nothing */
    REVOKED = EXPECTED_COUNT,
    EXPIRED,
    FORGED_NONE,  /* "alg": "none", no signature */
    FORGED_RS256, /* a public key's algorithm in the header, and a right signature by the secret */
    FORGED_KEY,   /* signed with another key */
    FORGED_USER,  /* a good number, but another user's */
    DEACTIVATED,  /* an admin who was */
    GARBAGE,
    CALLER_KIND_COUNT,
};

static const char *const caller_names[] = {
    "nobody",
    "owner",
    "other",
    "admin",
    "owner's application",
    "admin's application",
    "owner's application of scope read",
    "owner's application of scope submit",
    "owner's application of scope admin",
    "admin's application of scope read",
    "admin's application of scope admin",
    "group admin",
    "group member",
    "revoked",
    "expired",
    "forged with none",
    "forged with RS256",
    "forged with another key",
    "forged for another user",
    "deactivated",
    "garbage",
};

struct row {
    enum http_method method;
    const char *path;
    int expected[EXPECTED_COUNT];
    const char *body; /* NULL: none */
};

/* nobody; owner, other, admin; applications of owner and admin; the owner's of scope read, submit
 * and admin; the admin's of scope read and admin; the group's admin, and a member */
/* clang-format off */
#define ANYONE(s)     {s,   s,   s,   s,   s,   s,   s,   s,   s,   s,   s,   s,   s}
#define USER(s)       {401, s,   s,   s,   s,   s,   s,   s,   s,   s,   s,   s,   s}
#define SUBMITTER(s)  {401, s,   s,   s,   s,   s,   403, s,   s,   403, s,   s,   s}
#define BROWSER(s)    {401, s,   s,   s,   403, 403, 403, 403, 403, 403, 403, s,   s}
#define ADMINS(s)     {401, 403, 403, s,   403, s,   403, 403, 403, 403, s,   403, 403}
#define MANAGERS(s)   {401, 403, 403, s,   403, 403, 403, 403, 403, 403, s,   403, 403}
#define OWNERS(s)     {401, s,   403, s,   s,   s,   403, s,   s,   403, s,   403, 403}
#define READERS(s)    {401, s,   403, s,   s,   s,   s,   s,   s,   403, s,   403, 403}
#define NAMESAKE(s)   {401, s,   403, 403, s,   403, 403, s,   s,   403, 403, 403, 403}
#define SELF(s)       {401, s,   403, 403, s,   403, 403, s,   s,   403, 403, 403, 403}
#define EDITORS(s)    {401, s,   403, s,   403, 403, 403, 403, s,   403, s,   403, 403}
#define GROUPERS(s)   {401, 403, 403, s,   403, 403, 403, 403, 403, 403, s,   s,   403}
#define STORED(s)     {401, 403, 403, s,   403, s,   403, 403, 403, 403, s,   s,   s}
#define MEMBERS(s)    {401, 403, 403, s,   403, s,   403, 403, 403, 403, s,   s,   403}
#define TOKEN_OWNER   {401, 200, 404, 404, 403, 403, 403, 403, 403, 403, 403, 404, 404}
/* clang-format on */

#define KUBERNETES "/api/v1/kubernetes/api/v1"
#define TASK       "/api/v2/jobs/:job/attempts/:attempt/taskRoles/:role/taskIndex/:index/attempts"
#define ITEMS      "/marketplace/api/items"
#define STOP       "{\"value\":\"STOP\"}"
#define TAG        "{\"value\":\"a-tag\"}"

/* What a caller may do still fails when the rest of the request is wrong: a submission without a
 * job file (400), the deletion of a running job (409). That shows the right, and changes nothing.
 */
static const struct row ROWS[] = {
    {HTTP_GET, "/healthz", ANYONE(200), NULL},
    {HTTP_GET, "/livez", ANYONE(200), NULL},
    {HTTP_GET, "/readyz", ANYONE(200), NULL},
    {HTTP_GET, "/metrics", ANYONE(200), NULL},

    {HTTP_GET, "/api/v2", ANYONE(200), NULL},
    {HTTP_GET, "/api/v2/info", ANYONE(200), NULL},
    {HTTP_GET, "/api/v2/authn/info", ANYONE(200), NULL},
    {HTTP_POST, "/api/v2/authn/basic/login", ANYONE(400), NULL},
    {HTTP_DELETE, "/api/v2/authn/basic/logout", BROWSER(200), NULL},
    /* not configured here */
    {HTTP_GET, "/api/v2/authn/oidc/login", ANYONE(404), NULL},
    {HTTP_GET, "/api/v2/authn/oidc/return", ANYONE(404), NULL},
    {HTTP_POST, "/api/v2/authn/oidc/return", ANYONE(404), NULL},
    {HTTP_POST, "/api/v2/authn/oidc/token", ANYONE(404), NULL},
    {HTTP_POST, "/api/v2/authn/oidc/device", ANYONE(404), NULL},
    {HTTP_GET, "/api/v2/authn/oidc/logout", ANYONE(404), NULL},
    {HTTP_POST, "/api/v2/tokens", ANYONE(400), NULL},
    {HTTP_GET, "/api/v2/tokens", BROWSER(200), NULL},
    {HTTP_POST, "/api/v2/tokens/application", BROWSER(200), NULL},
    {HTTP_GET, "/api/v2/tokens/check", USER(200), NULL},
    {HTTP_DELETE, "/api/v2/tokens/:token", TOKEN_OWNER, NULL},

    {HTTP_GET, "/api/v2/jobs", USER(200), NULL},
    {HTTP_POST, "/api/v2/jobs", SUBMITTER(400), NULL},
    {HTTP_GET, "/api/v2/jobs/:job", USER(200), NULL},
    {HTTP_PUT, "/api/v2/jobs/:job", NAMESAKE(400), NULL},
    {HTTP_DELETE, "/api/v2/jobs/:job", OWNERS(409), NULL},
    {HTTP_GET, "/api/v2/jobs/:job/config", READERS(200), NULL},
    {HTTP_PUT, "/api/v2/jobs/:job/executionType", OWNERS(202), STOP},
    {HTTP_PUT, "/api/v2/jobs/:job/tag", OWNERS(200), TAG},
    {HTTP_DELETE, "/api/v2/jobs/:job/tag", OWNERS(404), TAG},
    {HTTP_GET, "/api/v2/jobs/:job/events", USER(200), NULL},
    {HTTP_GET, "/api/v2/jobs/:job/logs", READERS(200), NULL},
    {HTTP_POST, "/api/v2/bulk/jobs", USER(400), NULL},               /* without an action */
    {HTTP_GET, "/api/v2/jobs/:job/logs/search", READERS(400), NULL}, /* without a pattern */
    {HTTP_GET, "/api/v2/jobs/:job/use", USER(200), NULL},
    /* no engine here can do it; who may not is refused before */
    {HTTP_POST, "/api/v2/jobs/:job/exec", OWNERS(400), NULL},
    /* not set up here */
    {HTTP_POST, "/api/v2/jobs/:job/webPorts", OWNERS(400), NULL},
    /* no WebSocket is asked for; no such session */
    {HTTP_GET, "/api/v2/exec/:session", USER(400), NULL},
    {HTTP_DELETE, "/api/v2/exec/:session", SUBMITTER(404), NULL},
    {HTTP_POST, "/api/v2/exec/:session/link", SUBMITTER(404), NULL},
    {HTTP_PUT, "/api/v2/jobs/:job/release", OWNERS(202), NULL},
    {HTTP_PUT, "/api/v2/jobs/:job/taskRoles/:role/instances", OWNERS(409), "{\"instances\":1}"},
    {HTTP_GET, "/api/v2/jobs/:job/tasks", USER(200), NULL},
    {HTTP_GET, "/api/v2/jobs/:job/task-values", USER(200), NULL},
    {HTTP_GET, "/api/v2/jobs/:job/job-attempts/healthz", USER(200), NULL},
    {HTTP_GET, "/api/v2/jobs/:job/job-attempts", USER(200), NULL},
    {HTTP_GET, "/api/v2/jobs/:job/job-attempts/:attempt", USER(200), NULL},
    {HTTP_GET, "/api/v2/jobs/:job/attempts", USER(200), NULL},
    {HTTP_GET, "/api/v2/jobs/:job/attempts/:attempt", USER(200), NULL},
    {HTTP_GET, TASK, USER(200), NULL},
    {HTTP_GET, TASK "/:taskAttempt/logs", READERS(200), NULL},
    {HTTP_GET, TASK "/:taskAttempt/logs/:stream", READERS(200), NULL},
    {HTTP_GET, "/api/v2/jobs/:job/ssh", USER(404), NULL},

    {HTTP_GET, "/api/v2/users", USER(200), NULL},
    {HTTP_POST, "/api/v2/users", MANAGERS(400), NULL},
    {HTTP_PUT, "/api/v2/users", MANAGERS(400), NULL},
    {HTTP_PUT, "/api/v2/users/me", USER(400), NULL},
    {HTTP_GET, "/api/v2/users/:user", USER(200), NULL},
    {HTTP_DELETE, "/api/v2/users/:user", MANAGERS(404), NULL},
    {HTTP_PUT, "/api/v2/users/:user/extension", EDITORS(201), "{\"extension\":{}}"},
    {HTTP_PUT, "/api/v2/users/:user/email", EDITORS(201), "{\"email\":\"a@b.c\"}"},
    {HTTP_PUT, "/api/v2/users/:user/password", EDITORS(400), "{\"newPassword\":\"short\"}"},
    {HTTP_PUT, "/api/v2/users/:user/virtualcluster", MANAGERS(201), "{\"virtualCluster\":[]}"},
    {HTTP_PUT, "/api/v2/users/:user/admin", MANAGERS(201), "{\"admin\":false}"},
    {HTTP_PUT, "/api/v2/users/:user/grouplist", MANAGERS(201), "{\"grouplist\":[]}"},
    {HTTP_PUT, "/api/v2/users/:user/group", GROUPERS(201), "{\"groupname\":\"lab\"}"},
    {HTTP_DELETE, "/api/v2/users/:user/group", GROUPERS(201), "{\"groupname\":\"lab\"}"},
    {HTTP_GET, "/api/v2/users/:user/quota", READERS(200), NULL},
    {HTTP_PUT, "/api/v2/users/:user/quota", MANAGERS(201), "{\"gpus\":null}"},
    {HTTP_GET, "/api/v2/groups", USER(200), NULL},
    {HTTP_POST, "/api/v2/groups", MANAGERS(400), NULL},
    {HTTP_PUT, "/api/v2/groups", MANAGERS(400), NULL},
    {HTTP_GET, "/api/v2/groups/:group", USER(200), NULL},
    {HTTP_DELETE, "/api/v2/groups/:group", MANAGERS(404), NULL},
    {HTTP_GET, "/api/v2/groups/:group/quota", MEMBERS(200), NULL},
    {HTTP_PUT, "/api/v2/groups/:group/quota", MANAGERS(201), "{\"gpus\":null}"},
    {HTTP_GET, "/api/v2/groups/:group/userlist", MEMBERS(200), NULL},
    {HTTP_PUT, "/api/v2/groups/:group/description", MANAGERS(201), "{\"description\":\"\"}"},
    {HTTP_PUT, "/api/v2/groups/:group/externalname", MANAGERS(201), "{\"externalName\":\"\"}"},
    {HTTP_PUT, "/api/v2/groups/:group/extension", MANAGERS(201), "{\"extension\":{}}"},
    {HTTP_PUT, "/api/v2/groups/:group/extension/*key", MANAGERS(201), "{\"data\":1}"},

    {HTTP_GET, "/api/v2/requests", USER(200), NULL},
    {HTTP_POST, "/api/v2/requests", SUBMITTER(400), NULL},
    {HTTP_POST, "/api/v2/requests/account", ANYONE(403), NULL}, /* is turned off in this world */
    /* alice's */
    {HTTP_GET, "/api/v2/requests/:request", READERS(200), NULL},
    {HTTP_PUT, "/api/v2/requests/:request/status", OWNERS(400), "{\"status\":\"lost\"}"},

    {HTTP_GET, "/api/v2/nodes", USER(200), NULL},
    {HTTP_GET, "/api/v2/nodes/:node/use", USER(200), NULL},
    {HTTP_PUT, "/api/v2/nodes/:node/pardon", ADMINS(202), NULL},
    {HTTP_PUT, "/api/v2/nodes/:node/cordon", ADMINS(400), "{\"reason\": 7}"},
    {HTTP_PUT, "/api/v2/nodes/:node/drain", ADMINS(400), "{\"reason\": 7}"},
    {HTTP_PUT, "/api/v2/nodes/:node/uncordon", ADMINS(202), NULL},
    {HTTP_GET, "/api/v2/virtual-clusters", USER(200), NULL},
    {HTTP_GET, "/api/v2/virtual-clusters/:vc", USER(200), NULL},
    {HTTP_GET, "/api/v2/virtual-clusters/:vc/sku-types", USER(200), NULL},
    {HTTP_PUT, "/api/v2/virtual-clusters/:vc", ADMINS(400), NULL},
    {HTTP_DELETE, "/api/v2/virtual-clusters/:vc", ADMINS(400), NULL},
    {HTTP_PUT, "/api/v2/virtual-clusters/:vc/status", ADMINS(400), NULL},
    {HTTP_GET, "/api/v2/cluster/sku-types", USER(200), NULL},

    {HTTP_GET, "/api/v2/audit", ADMINS(200), NULL},
    {HTTP_GET, "/api/v2/changes", USER(200), NULL},
    {HTTP_GET, "/api/v2/alerts", USER(200), NULL},
    {HTTP_GET, "/api/v2/plugins", USER(200), NULL},
    {HTTP_GET, "/api/v2/exit-specs", USER(200), NULL},
    {HTTP_GET, "/api/v2/log", ADMINS(200), NULL},
    {HTTP_GET, "/api/v2/settings", ADMINS(200), NULL},
    {HTTP_GET, "/api/v2/kubernetes/nodes", ADMINS(200), NULL},
    {HTTP_GET, "/api/v2/kubernetes/pods", ADMINS(200), NULL},
    {HTTP_GET, "/api/v2/storages", USER(200), NULL},
    {HTTP_GET, "/api/v2/storages/:storage", STORED(200), NULL},
    /* files are turned off in this world */
    {HTTP_GET, "/api/v2/storages/:storage/files", STORED(400), NULL},
    {HTTP_DELETE, "/api/v2/storages/:storage/files", STORED(400), NULL},
    {HTTP_PUT, "/api/v2/storages/:storage/files", STORED(400), NULL},
    {HTTP_POST, "/api/v2/storages/:storage/folders", STORED(400), NULL},
    {HTTP_GET, "/api/v2/storages/:storage/file", STORED(400), NULL},
    {HTTP_POST, "/api/v2/storages/:storage/links", STORED(400), NULL},
    {HTTP_GET, "/api/v2/storages/:storage/links/:file", STORED(400), NULL},
    {HTTP_POST, "/api/v2/storages/:storage/uploads", STORED(400), NULL},
    {HTTP_GET, "/api/v2/storages/:storage/uploads/:upload", STORED(400), NULL},
    {HTTP_PUT, "/api/v2/storages/:storage/uploads/:upload", STORED(400), NULL},
    {HTTP_POST, "/api/v2/storages/:storage/uploads/:upload", STORED(400), NULL},
    {HTTP_DELETE, "/api/v2/storages/:storage/uploads/:upload", STORED(400), NULL},
    {HTTP_GET, "/api/v2/storage/health", ADMINS(200), NULL},
    {HTTP_GET, "/api/v2/storage/config", USER(200), NULL},
    {HTTP_GET, "/api/v2/storage/config/:storage", STORED(200), NULL},
    {HTTP_GET, "/api/v2/storage/server", USER(200), NULL},
    {HTTP_GET, "/api/v2/storage/server/:storage", STORED(200), NULL},

    {HTTP_GET, ITEMS, USER(200), NULL},
    {HTTP_POST, ITEMS, SUBMITTER(400), NULL},
    /* alice's, shared with nobody */
    {HTTP_GET, ITEMS "/:item", READERS(200), NULL},
    {HTTP_PUT, ITEMS "/:item", OWNERS(400), "{\"name\":7}"},
    {HTTP_DELETE, ITEMS "/:item", OWNERS(200), NULL},
    {HTTP_PUT, ITEMS "/:item/status", ADMINS(400), NULL},
    {HTTP_GET, ITEMS "/:item/versions", OWNERS(200), NULL},
    {HTTP_GET, ITEMS "/:item/versions/:version", OWNERS(200), NULL},
    {HTTP_POST, ITEMS "/:item/versions/:version/restore", OWNERS(409), NULL},
    {HTTP_PUT, ITEMS "/:item/official", ADMINS(400), NULL},
    {HTTP_POST, ITEMS "/:item/use", OWNERS(200), NULL},
    {HTTP_PUT, ITEMS "/:item/star", OWNERS(200), NULL},
    {HTTP_DELETE, ITEMS "/:item/star", OWNERS(200), NULL},
    {HTTP_GET, ITEMS "/:item/tag", READERS(200), NULL},
    {HTTP_GET, ITEMS "/:item/category", READERS(200), NULL},
    {HTTP_GET, "/marketplace/api/tags", USER(200), NULL},
    {HTTP_GET, "/marketplace/api/categories", USER(200), NULL},

    {HTTP_GET, "/v1/inspect", USER(200), NULL},
    {HTTP_GET, "/v1/inspect/affinitygroups", USER(200), NULL},
    {HTTP_GET, "/v1/inspect/affinitygroups/*group", USER(400), NULL},
    {HTTP_GET, "/v1/inspect/clusterstatus", USER(200), NULL},
    {HTTP_GET, "/v1/inspect/clusterstatus/physicalcluster", USER(200), NULL},
    {HTTP_GET, "/v1/inspect/clusterstatus/virtualclusters", USER(200), NULL},
    {HTTP_GET, "/v1/inspect/clusterstatus/virtualclusters/:vc", USER(200), NULL},

    /* only by the token of the try, which none of these is */
    {HTTP_POST, "/api/internal/attempts/:attempt/barriers/:barrier", ANYONE(401), NULL},
    {HTTP_GET, "/api/internal/tail-logs/:log", READERS(206), NULL},

    {HTTP_GET, "/api/v1", ANYONE(200), NULL},
    {HTTP_GET, "/api/v1/authn/info", ANYONE(200), NULL},
    {HTTP_POST, "/api/v1/authn/basic/login", ANYONE(400), NULL},
    {HTTP_DELETE, "/api/v1/authn/basic/logout", BROWSER(200), NULL},
    {HTTP_GET, "/api/v1/authn/oidc/login", ANYONE(404), NULL},
    {HTTP_GET, "/api/v1/authn/oidc/return", ANYONE(404), NULL},
    {HTTP_POST, "/api/v1/authn/oidc/return", ANYONE(404), NULL},
    {HTTP_GET, "/api/v1/authn/oidc/logout", ANYONE(404), NULL},
    {HTTP_POST, "/api/v1/token", ANYONE(400), NULL},
    {HTTP_GET, "/api/v1/token", BROWSER(200), NULL},
    {HTTP_DELETE, "/api/v1/token/:token", TOKEN_OWNER, NULL},
    {HTTP_POST, "/api/v1/token/application", BROWSER(200), NULL},
    {HTTP_GET, "/api/v1/token/check", USER(200), NULL},
    {HTTP_GET, "/api/v1/user", ADMINS(200), NULL},
    {HTTP_PUT, "/api/v1/user", USER(400), NULL},
    {HTTP_DELETE, "/api/v1/user", MANAGERS(400), NULL},
    {HTTP_GET, "/api/v1/user/:user", USER(200), NULL},
    {HTTP_PUT, "/api/v1/user/:user/virtualClusters", MANAGERS(201), "{\"virtualClusters\":\"\"}"},
    {HTTP_PUT, "/api/v1/user/:user/githubPAT", EDITORS(201), "{\"githubPAT\":\"x\"}"},
    {HTTP_GET, "/api/v1/kubernetes/nodes", ADMINS(200), NULL},
    {HTTP_GET, "/api/v1/kubernetes/pods", ADMINS(200), NULL},
    {HTTP_GET, KUBERNETES "/nodes", ADMINS(200), NULL},
    {HTTP_GET, KUBERNETES "/nodes/:node", ADMINS(200), NULL},
    {HTTP_GET, KUBERNETES "/pods", ADMINS(200), NULL},
    {HTTP_GET, KUBERNETES "/namespaces/:namespace/pods", ADMINS(200), NULL},
    {HTTP_GET, KUBERNETES "/namespaces/:namespace/pods/:pod", ADMINS(404), NULL},
    {HTTP_GET, "/api/v1/virtual-clusters", USER(200), NULL},
    {HTTP_GET, "/api/v1/virtual-clusters/:vc", USER(200), NULL},
    {HTTP_PUT, "/api/v1/virtual-clusters/:vc", ADMINS(400), NULL},
    {HTTP_DELETE, "/api/v1/virtual-clusters/:vc", ADMINS(400), NULL},
    {HTTP_PUT, "/api/v1/virtual-clusters/:vc/status", ADMINS(400), NULL},
    {HTTP_GET, "/api/v1/jobs", USER(200), NULL},
    {HTTP_POST, "/api/v1/jobs", SUBMITTER(400), NULL},
    {HTTP_GET, "/api/v1/jobs/:job", USER(200), NULL},
    {HTTP_PUT, "/api/v1/jobs/:job", SUBMITTER(400), NULL},
    {HTTP_DELETE, "/api/v1/jobs/:job", OWNERS(409), NULL},
    {HTTP_GET, "/api/v1/jobs/:job/config", READERS(200), NULL},
    {HTTP_GET, "/api/v1/jobs/:job/ssh", OWNERS(404), NULL},
    {HTTP_GET, "/api/v1/jobs/:job/ssh/key", OWNERS(404), NULL},
    {HTTP_PUT, "/api/v1/jobs/:job/executionType", OWNERS(202), STOP},
    {HTTP_GET, "/api/v1/user/:user/jobs", USER(200), NULL},
    {HTTP_POST, "/api/v1/user/:user/jobs", SELF(400), NULL},
    {HTTP_GET, "/api/v1/user/:user/jobs/:job", USER(200), NULL},
    {HTTP_PUT, "/api/v1/user/:user/jobs/:job", SELF(400), NULL},
    {HTTP_DELETE, "/api/v1/user/:user/jobs/:job", OWNERS(409), NULL},
    {HTTP_GET, "/api/v1/user/:user/jobs/:job/config", READERS(200), NULL},
    {HTTP_GET, "/api/v1/user/:user/jobs/:job/ssh", OWNERS(404), NULL},
    {HTTP_PUT, "/api/v1/user/:user/jobs/:job/executionType", OWNERS(202), STOP},
};

/* ---- callers ---- */

enum { TEXT_MAX = 2048, LIFE_S = 3600 };

/* Sign a token; with `is_listed` it counts until it is revoked. */
static void token_make(struct world *world, const struct token_claims *claims,
                       enum auth_scope scope, bool is_listed, char token[TEXT_MAX])
{
    cleanup_arena struct arena arena;
    struct text signed_token;
    struct err err;
    arena_init(&arena);
    assert_int_equal(token_sign(world->key, claims, &arena, &signed_token, &err), 0);
    snprintf(token, TEXT_MAX, "%.*s", TEXT_ARG(signed_token));
    if (!is_listed)
        return;
    struct store_change change = {.kind = CHANGE_TOKEN_ADD,
                                  .token = {.id = claims->id,
                                            .user = claims->user,
                                            .is_application = claims->is_application,
                                            .scope = (uint8_t)scope,
                                            .created_ms = claims->issued_s * 1000,
                                            .expires_ms = claims->expires_s * 1000}};
    struct store_batch batch = {.changes = &change, .change_count = 1};
    assert_int_equal(store_commit(world->store, &batch, &err), 0);
    assert_int_equal(change.code, 0);
}

static void encode(const void *bytes, size_t length, char *text, size_t room)
{
    sodium_bin2base64(text, room, bytes, length, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

/* Another header before the payload of a good token, with its signature by this key; NULL: none. */
static void header_forge(const char *header, const uint8_t *key, char token[TEXT_MAX])
{
    char encoded[256], forged[TEXT_MAX], signature[64] = "";
    uint8_t digest[crypto_auth_hmacsha256_BYTES];
    encode(header, strlen(header), encoded, sizeof encoded);
    const char *payload = strchr(token, '.');
    int length = snprintf(forged, sizeof forged, "%s%.*s", encoded,
                          (int)(strrchr(token, '.') - payload), payload);
    if (key) {
        crypto_auth_hmacsha256(digest, (const unsigned char *)forged, (unsigned long long)length,
                               key);
        encode(digest, sizeof digest, signature, sizeof signature);
    }
    snprintf(token, TEXT_MAX, "%.*s.%s", length, forged, signature);
}

static const char *user_of(enum caller_kind kind)
{
    switch (kind) {
    case OWNER:
    case OWNER_APPLICATION:
    case OWNER_READ:
    case OWNER_SUBMIT:
    case OWNER_ADMIN:
        return "alice";
    case OTHER:
        return "bob";
    case LAB_ADMIN:
        return "carol";
    case LAB_MEMBER:
        return "dora";
    case DEACTIVATED:
        return "dan";
    case NOBODY:
    case ADMIN:
    case ADMIN_APPLICATION:
    case ADMIN_READ:
    case ADMIN_ADMIN:
    case EXPECTED_COUNT: /* as REVOKED */
    case EXPIRED:
    case FORGED_NONE:
    case FORGED_RS256:
    case FORGED_KEY:
    case FORGED_USER:
    case GARBAGE:
    case CALLER_KIND_COUNT:
        break;
    }
    return "admin"; /* what bad tokens pretend to be */
}

static enum auth_scope scope_of(enum caller_kind kind)
{
    if (kind == OWNER_READ || kind == ADMIN_READ)
        return AUTH_SCOPE_READ;
    if (kind == OWNER_SUBMIT)
        return AUTH_SCOPE_SUBMIT;
    return kind == OWNER_ADMIN || kind == ADMIN_ADMIN ? AUTH_SCOPE_ADMIN : AUTH_SCOPE_USUAL;
}

/* What the caller shows. `id` becomes the token's number. */
static const char *token_of(struct world *world, enum caller_kind kind, char id[TOKEN_ID_SIZE],
                            char token[TEXT_MAX])
{
    const int64_t now_s = (int64_t)time(NULL);
    struct token_claims claims = {
        .id = id,
        .user = user_of(kind),
        .is_application = kind >= OWNER_APPLICATION && kind <= ADMIN_ADMIN,
        .issued_s = now_s - 60,
        .expires_s = kind == EXPIRED ? now_s - 1 : now_s + LIFE_S,
    };
    token_id_make(id);
    if (kind == NOBODY)
        return NULL;
    if (kind == GARBAGE)
        return "not.a.token";
    if (kind == FORGED_KEY)
        world->key[0] ^= 1;
    token_make(world, &claims, scope_of(kind), kind != REVOKED && kind != FORGED_USER, token);
    if (kind == FORGED_KEY)
        world->key[0] ^= 1;
    if (kind == FORGED_USER) {
        char unused[TEXT_MAX];
        claims.user = "bob";
        token_make(world, &claims, AUTH_SCOPE_USUAL, true, unused);
    }
    if (kind == FORGED_NONE)
        header_forge("{\"alg\":\"none\",\"typ\":\"JWT\"}", NULL, token);
    if (kind == FORGED_RS256)
        header_forge("{\"alg\":\"RS256\",\"typ\":\"JWT\"}", world->key, token);
    return token;
}

/* A user has at most so many tokens. */
static void token_drop(struct world *world, const char *user, const char *id)
{
    struct store_change change = {.kind = CHANGE_TOKEN_REMOVE, .token = {.id = id, .user = user}};
    struct store_batch batch = {.changes = &change, .change_count = 1};
    struct err err;
    assert_int_equal(store_commit(world->store, &batch, &err), 0);
}

/* ---- calls ---- */

struct subject {
    struct job_id job;
    char job_name[32];
    char token_id[TOKEN_ID_SIZE];
};

static bool is_about_a_job(const struct row *row)
{
    return strstr(row->path, ":job") || strstr(row->path, ":log");
}

/* A running job of alice's, which has written something. */
static struct subject subject_make(struct world *world, const char *alice)
{
    static unsigned number;
    struct subject subject;
    snprintf(subject.job_name, sizeof subject.job_name, "job-%u", ++number);
    subject.job = world_submit(world, alice, subject.job_name, 1);
    world_run(world, subject.job);
    struct attempt_id attempt = world_attempt(world, subject.job, 0);
    assert_int_not_equal(attempt.v, 0);
    struct world_attempt_log *log = world_log(world, attempt);
    buf_string(&log->text, "a line\n");
    return subject;
}

/* The path with what the parameters stand for. */
static void target_of(const struct row *row, const struct subject *subject, struct buf *target)
{
    static const struct {
        const char *name, *value;
    } FIXED[] = {
        {":user", "alice"},      {":group", "lab"},      {"*key", "a/b"},
        {":attempt", "0"},       {":role", "worker"},    {":index", "0"},
        {":taskAttempt", "0"},   {":stream", "all"},     {":storage", "corpus"},
        {":file", "61"},         {":upload", "none"},    {":namespace", "default"},
        {":pod", "skep-0"},      {":node", "n1"},        {":vc", "default"},
        {":barrier", "start"},   {"*group", "no/group"}, {":session", "none"},
        {":item", "alice~mine"}, {":version", "1"},      {":request", "1"},
    };
    bool has_user = strstr(row->path, "/:user/jobs") != NULL;
    struct text rest = text_of(row->path + 1);
    while (rest.length) {
        struct text part = text_cut(&rest, '/');
        buf_string(target, "/");
        if (row->method == HTTP_DELETE && !rest.length &&
            (text_is(part, ":user") || text_is(part, ":group")))
            buf_string(target, "nobody-here"); /* the others are still needed */
        else if (text_is(part, ":job"))
            buf_format(target, "%s%s", has_user ? "" : "alice~", subject->job_name);
        else if (text_is(part, ":token"))
            buf_string(target, subject->token_id);
        else if (text_is(part, ":log"))
            buf_format(target, "alice~%s:0:worker:0:0:all", subject->job_name);
        else {
            for (size_t i = 0; i < COUNT_OF(FIXED); i++)
                if (text_is(part, FIXED[i].name))
                    part = text_of(FIXED[i].value);
            assert_true(part.at[0] != ':' && part.at[0] != '*');
            buf_text(target, part);
        }
    }
}

/* alice's template; it is there already unless the row before has removed it. */
static void request_make(struct world *world)
{
    struct store_change change = {
        .kind = CHANGE_REQUEST_ADD,
        .request.row = {
            .id = "1", .user = "alice", .virtual_cluster = "vc1", .why = "", .asked_ms = 1}};
    struct store_batch batch = {.changes = &change, .change_count = 1};
    struct err err;
    assert_int_equal(store_commit(world->store, &batch, &err), 0);
    assert_true(change.code == 0 || change.code == ERR_CONFLICT);
}

static void template_make(struct world *world)
{
    struct store_change change = {.kind = CHANGE_TEMPLATE_ADD,
                                  .template.row = {.id = "1",
                                                   .author = "alice",
                                                   .name = "mine",
                                                   .summary = "",
                                                   .description = "",
                                                   .protocol = "",
                                                   .created_ms = 1,
                                                   .updated_ms = 1}};
    struct store_batch batch = {.changes = &change, .change_count = 1};
    struct err err;
    assert_int_equal(store_commit(world->store, &batch, &err), 0);
    assert_true(change.code == 0 || change.code == ERR_CONFLICT);
}

static bool row_holds(struct world *world, const char *alice, const struct row *row,
                      enum caller_kind kind)
{
    cleanup_buf struct buf target = BUF_INIT;
    char id[TOKEN_ID_SIZE], token[TEXT_MAX], unused[TEXT_MAX];
    struct subject subject = {0};
    if (is_about_a_job(row))
        subject = subject_make(world, alice);
    token_of(world, OWNER, subject.token_id, unused);
    template_make(world);
    request_make(world);
    const char *shown = token_of(world, kind, id, token);
    target_of(row, &subject, &target);
    int status =
        world_send(world, row->method, buf_cstr(&target), shown, row->body ? row->body : "");
    int expected = row->expected[kind < EXPECTED_COUNT ? kind : NOBODY];
    if (status != expected)
        fprintf(stderr, "%s %s by %s: %d instead of %d: %s\n", http_method_name(row->method),
                row->path, caller_names[kind], status, expected, buf_cstr(&world->body));
    world_stream_close(world);
    if (subject.job.v)
        world_exit(world, subject.job, 0, 0);
    token_drop(world, "alice", subject.token_id);
    token_drop(world, kind == FORGED_USER ? "bob" : user_of(kind), id);
    return status == expected;
}

static void change(struct world *world, struct store_change change)
{
    struct store_batch batch = {.changes = &change, .change_count = 1};
    struct err err;
    assert_int_equal(store_commit(world->store, &batch, &err), 0);
    assert_int_equal(change.code, 0);
}

static void accounts_make(struct world *world)
{
    struct store_member lab = {.name = "lab", .is_admin = true}, member = {.name = "lab"};
    change(world, (struct store_change){
                      .kind = CHANGE_GROUP_ADD,
                      .group = {.name = "lab",
                                .description = "",
                                .extension_json = "{\"acls\":{\"storageConfigs\":[\"corpus\"]}}"}});
    change(world, (struct store_change){.kind = CHANGE_USER_ADD,
                                        .user = {.name = "carol",
                                                 .password_hash = "",
                                                 .email = "",
                                                 .extension_json = "{}",
                                                 .groups = {&lab, 1}}});
    change(world, (struct store_change){.kind = CHANGE_USER_ADD,
                                        .user = {.name = "dora",
                                                 .password_hash = "",
                                                 .email = "",
                                                 .extension_json = "{}",
                                                 .groups = {&member, 1}}});
    change(world, (struct store_change){.kind = CHANGE_USER_ADD,
                                        .user = {.name = "dan",
                                                 .password_hash = "",
                                                 .email = "",
                                                 .extension_json = "{}",
                                                 .is_admin = true,
                                                 .is_inactive = true}});
}

static void test_matrix(void **state)
{
    struct world *world = world_new_policy("hived");
    unsigned wrong = 0;
    (void)state;
    accounts_make(world);
    const char *alice = world_login(world, "alice");
    for (size_t i = 0; i < COUNT_OF(ROWS); i++)
        for (unsigned kind = 0; kind < CALLER_KIND_COUNT; kind++)
            wrong += !row_holds(world, alice, &ROWS[i], (enum caller_kind)kind);
    world_free(world);
    assert_int_equal(wrong, 0);
}

static const struct row *row_of(const struct route *route)
{
    for (size_t i = 0; i < COUNT_OF(ROWS); i++)
        if (ROWS[i].method == route->method && strcmp(ROWS[i].path, route->path) == 0)
            return &ROWS[i];
    return NULL;
}

static void test_every_route_has_a_row(void **state)
{
    unsigned missing = 0;
    (void)state;
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        if (row_of(&ROUTES[i]))
            continue;
        fprintf(stderr, "no row for %s %s\n", http_method_name(ROUTES[i].method), ROUTES[i].path);
        missing++;
    }
    assert_int_equal(missing, 0);
    assert_int_equal(COUNT_OF(ROWS), ROUTE_COUNT);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_every_route_has_a_row),
    cmocka_unit_test(test_matrix),
};
UNIT_FILE(tests, NULL, NULL);
