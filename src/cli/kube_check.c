#include "cli/kube_check.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "cli/client.h"
#include "cli/print.h"
#include "kube/rights.h"
#include "sys/clock.h"

enum { STATUS_NOT_FOUND = 404, STATUS_FORBIDDEN = 403, STATUS_UNAUTHORIZED = 401 };

static const char needs_admin[] = "who asks may not see it: ask as an administrator";

void kube_find(struct kube_judge *judge, const char *name, enum machine_state state,
               const char *meaning, const char *format, ...)
{
    va_list args;
    if (judge->count == KUBE_FINDINGS_MAX)
        return;
    struct machine_finding *finding = &judge->findings[judge->count++];
    *finding = (struct machine_finding){
        .name = arena_copy(judge->arena, text_of(name)),
        .state = state,
        .meaning = state == MACHINE_GOOD ? "" : arena_copy(judge->arena, text_of(meaning))};
    va_start(args, format);
    vsnprintf(finding->found, sizeof finding->found, format, args);
    va_end(args);
}

static void ask(struct kube_judge *judge, const char *path, json_t *body, struct kube_reply *reply)
{
    kube_ask_send(judge->ask, path, body, false, reply);
}

static bool is_good(const struct kube_reply *reply)
{
    return reply->status >= 200 && reply->status < 300;
}

/* --- the API server --- */

static void clock_check(struct kube_judge *judge, const struct kube_reply *reply)
{
    if (reply->date_ms == 0)
        return;
    const int64_t apart = llabs(reply->date_ms - clock_unix_ms());
    kube_find(
        judge, "clock", apart <= KUBE_CLOCK_MS ? MACHINE_GOOD : MACHINE_LESS,
        "tokens and certificates count as expired or as not yet valid, and times of tasks are "
        "wrong: set the clocks of both by NTP",
        "%lld s apart from the API server's", (long long)(apart / 1000));
}

/* "34+" is 34. */
static int number_of(const json_t *version, const char *key)
{
    const char *text = field_text(version, key);
    return text ? (int)strtol(text, NULL, 10) : 0;
}

static void version_check(struct kube_judge *judge, const struct kube_reply *reply)
{
    const int major = number_of(reply->json, "major"), minor = number_of(reply->json, "minor");
    const char *version = field_text(reply->json, "gitVersion");
    kube_find(judge, "version",
              major > 1 || (major == 1 && minor >= KUBE_MINOR_MIN) ? MACHINE_GOOD : MACHINE_MISSING,
              "Skep needs Kubernetes 1.27 or newer", "%.60s", version ? version : "no version");
}

/* False: nothing else can be asked. */
static bool server_check(struct kube_judge *judge)
{
    cleanup_reply struct kube_reply reply = {0};
    const char *server = judge->wants->access.server;
    ask(judge, "/version", NULL, &reply);
    if (reply.status == STATUS_UNAUTHORIZED) {
        kube_find(judge, "API server", MACHINE_MISSING,
                  "it does not take the token or the certificate: it has expired, or is of another "
                  "cluster",
                  "%.60s: %.50s", server, reply.trouble);
        return false;
    }
    if (!is_good(&reply) || !reply.json) {
        kube_find(judge, "API server", MACHINE_MISSING,
                  "see that the address is right, that nothing stands between (a firewall, a proxy "
                  "of the environment), and that its certificate is the cluster's",
                  "%.118s", reply.trouble[0] ? reply.trouble : "it answers with no JSON");
        return false;
    }
    kube_find(judge, "API server", MACHINE_GOOD, "", "%.110s", server);
    version_check(judge, &reply);
    clock_check(judge, &reply);
    return true;
}

/* --- rights --- */

enum verdict { ALLOWED, DENIED, UNTOLD };

static json_t *review_make(const struct kube_judge *judge, const struct kube_right *right,
                           const char *verb)
{
    const struct kube_wants *wants = judge->wants;
    const char *slash = strchr(right->resource, '/');
    const int length = slash ? (int)(slash - right->resource) : (int)strlen(right->resource);
    json_t *what = json_pack("{ss,ss,ss%,ss,ss}", "verb", verb, "group", right->group, "resource",
                             right->resource, (size_t)length, "subresource", slash ? slash + 1 : "",
                             "namespace", right->is_of_cluster ? "" : wants->space);
    json_t *spec = json_pack("{so}", "resourceAttributes", what);
    if (wants->account) {
        json_object_set_new(spec, "user",
                            json_string(arena_format(judge->arena, "system:serviceaccount:%s:%s",
                                                     wants->account_space, wants->account)));
        json_object_set_new(
            spec, "groups",
            json_pack("[sss]", "system:serviceaccounts",
                      arena_format(judge->arena, "system:serviceaccounts:%s", wants->account_space),
                      "system:authenticated"));
    }
    return json_pack("{ss,ss,so}", "apiVersion", "authorization.k8s.io/v1", "kind",
                     wants->account ? "SubjectAccessReview" : "SelfSubjectAccessReview", "spec",
                     spec);
}

static enum verdict right_ask(struct kube_judge *judge, const struct kube_right *right,
                              const char *verb)
{
    cleanup_reply struct kube_reply reply = {0};
    ask(judge,
        judge->wants->account ? "/apis/authorization.k8s.io/v1/subjectaccessreviews"
                              : "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        review_make(judge, right, verb), &reply);
    const json_t *allowed = json_object_get(json_object_get(reply.json, "status"), "allowed");
    if (!is_good(&reply) || !json_is_boolean(allowed))
        return UNTOLD;
    return json_is_true(allowed) ? ALLOWED : DENIED;
}

static void right_check(struct kube_judge *judge, const struct kube_right *right)
{
    cleanup_buf struct buf denied = BUF_INIT;
    struct text rest = text_of(right->verbs);
    bool is_untold = false;
    while (rest.length > 0) {
        const char *verb = arena_copy(judge->arena, text_cut(&rest, ' '));
        const enum verdict verdict = right_ask(judge, right, verb);
        is_untold = is_untold || verdict == UNTOLD;
        if (verdict == DENIED)
            buf_format(&denied, "%s%s", denied.length ? " " : "", verb);
    }
    const char *name =
        arena_format(judge->arena, right->is_for_metrics ? "right %s.%s" : "right %s",
                     right->resource, right->group);
    const char *where = right->is_of_cluster ? "the cluster" : judge->wants->space;
    if (denied.length > 0)
        kube_find(judge, name, right->can_lack ? MACHINE_LESS : MACHINE_MISSING,
                  arena_format(judge->arena, "%s: apply deploy/kubernetes/%s", right->without,
                               right->is_for_claims ? "rights-dra.yaml" : "rights.yaml"),
                  "not in %.50s: %.60s", where, buf_cstr(&denied));
    else
        kube_find(judge, name, is_untold ? MACHINE_UNKNOWN : MACHINE_GOOD,
                  "who asks may not ask for the rights of others: ask as an administrator, or "
                  "without --account",
                  "%s in %.60s", right->verbs, where);
}

static void rights_check(struct kube_judge *judge)
{
    for (size_t i = 0; i < KUBE_RIGHT_COUNT; i++)
        if ((!KUBE_RIGHTS[i].is_for_claims || judge->wants->way == KUBE_WAY_DRA) &&
            (!KUBE_RIGHTS[i].is_for_metrics || judge->wants->has_metrics))
            right_check(judge, &KUBE_RIGHTS[i]);
}

/* --- the namespace, and the pods that are let in --- */

/* False: it is not there. */
static bool space_check(struct kube_judge *judge)
{
    cleanup_reply struct kube_reply reply = {0};
    const char *space = judge->wants->space;
    static const char key[] = "pod-security.kubernetes.io/enforce";
    ask(judge, arena_format(judge->arena, "/api/v1/namespaces/%s", space), NULL, &reply);
    if (reply.status == STATUS_NOT_FOUND) {
        kube_find(judge, "namespace", MACHINE_MISSING,
                  "no task can run: apply deploy/kubernetes/rights.yaml, or name another",
                  "there is no %.90s", space);
        return false;
    }
    if (!is_good(&reply)) {
        kube_find(judge, "namespace", MACHINE_UNKNOWN, needs_admin, "%.90s", space);
        return true;
    }
    const json_t *labels = json_object_get(json_object_get(reply.json, "metadata"), "labels");
    const char *level = field_text(labels, key);
    kube_find(judge, "namespace", MACHINE_GOOD, "", "%.60s, pod security level: %.30s", space,
              level ? level : "the cluster's");
    return true;
}

/* What the engine's own pods ask the cluster for (engine/kubernetes/pod_make.c). */
static json_t *pod_make(const struct kube_wants *wants)
{
    json_t *security = json_pack("{sb,s{ss}}", "allowPrivilegeEscalation", 0, "seccompProfile",
                                 "type", "RuntimeDefault");
    json_t *container =
        json_pack("{ss,ss,so,s{s{ss,ss},s{ss,ss}}}", "name", "task", "image", "skep.invalid/task:1",
                  "securityContext", security, "resources", "limits", "cpu", "1", "memory", "64Mi",
                  "requests", "cpu", "1", "memory", "64Mi");
    json_t *toleration = json_pack("{ss,ss}", "key", wants->taint, "operator", "Exists");
    json_t *spec = json_pack("{sb,sb,ss,s[o],s[o]}", "hostNetwork", !wants->is_in_pod_network,
                             "automountServiceAccountToken", 0, "restartPolicy", "Never",
                             "tolerations", toleration, "containers", container);
    if (wants->runtime_class[0])
        json_object_set_new(spec, "runtimeClassName", json_string(wants->runtime_class));
    if (wants->priority_class[0])
        json_object_set_new(spec, "priorityClassName", json_string(wants->priority_class));
    if (wants->service_account[0])
        json_object_set_new(spec, "serviceAccountName", json_string(wants->service_account));
    return json_pack("{ss,ss,s{ss},so}", "apiVersion", "v1", "kind", "Pod", "metadata", "name",
                     "skep-kube-check", "spec", spec);
}

static void pod_check(struct kube_judge *judge)
{
    cleanup_reply struct kube_reply reply = {0};
    ask(judge,
        arena_format(judge->arena, "/api/v1/namespaces/%s/pods?dryRun=All", judge->wants->space),
        pod_make(judge->wants), &reply);
    const char *message = reply.trouble;
    const char *meaning =
        "a policy of the cluster or the namespace does not let Skep's pods in: see its admission";
    if (strstr(message, "violates PodSecurity"))
        meaning = judge->wants->is_in_pod_network
                      ? "label the namespace pod-security.kubernetes.io/enforce=baseline: images "
                        "run as root"
                      : "tasks are in the network of their nodes: label the namespace "
                        "pod-security.kubernetes.io/enforce=privileged, or use network: pod";
    else if (strstr(message, "RuntimeClass"))
        meaning = "make the runtime class, or name another";
    else if (strstr(message, "PriorityClass"))
        meaning = "make the priority class, or name another";
    else if (strstr(message, "service account") || strstr(message, "serviceaccount"))
        meaning = "the service account of the pods is not there (yet): make it, or wait for the "
                  "cluster's controllers";
    if (is_good(&reply))
        kube_find(judge, "pods", MACHINE_GOOD, "",
                  judge->wants->has_template ? "one like Skep's is let in (without podTemplate)"
                                             : "one like Skep's is let in");
    else if (reply.status == STATUS_FORBIDDEN && strstr(message, "cannot create resource"))
        kube_find(judge, "pods", MACHINE_UNKNOWN, "who asks may not create pods", "%.118s",
                  message);
    else
        kube_find(judge, "pods", MACHINE_MISSING, meaning, "%.118s", message);
}

static bool is_admitted(struct kube_judge *judge, json_t *pod)
{
    cleanup_reply struct kube_reply reply = {0};
    ask(judge,
        arena_format(judge->arena, "/api/v1/namespaces/%s/pods?dryRun=All", judge->wants->space),
        pod, &reply);
    /* a server that does not know the field drops it: then the answer lacks it */
    return is_good(&reply) &&
           json_is_false(json_object_get(json_object_get(reply.json, "spec"), "hostUsers"));
}

static void host_users_check(struct kube_judge *judge)
{
    const struct kube_wants *wants = judge->wants;
    const bool are_wanted = strcmp(wants->users, "off") != 0;
    const bool are_required = strcmp(wants->users, "required") == 0;
    json_t *own = pod_make(wants), *without = pod_make(wants);
    json_object_set_new(json_object_get(own, "spec"), "hostUsers", json_false());
    json_object_set_new(json_object_get(without, "spec"), "hostUsers", json_false());
    json_object_set_new(json_object_get(without, "spec"), "hostNetwork", json_false());
    const bool can_here = is_admitted(judge, own), can = is_admitted(judge, without);
    if (wants->is_in_pod_network) {
        kube_find(judge, "hostUsers",
                  can            ? MACHINE_GOOD
                  : are_required ? MACHINE_MISSING
                                 : MACHINE_LESS,
                  are_required ? "no task runs: enable the feature gate UserNamespacesSupport of "
                                 "the API server, or leave userNamespaces: required out"
                               : "root of a task is root of its node, without most of its "
                                 "capabilities: the cluster gives pods no user ids of their own",
                  can && !are_wanted ? "offered; userNamespaces is off"
                  : can              ? "offered"
                                     : "not offered");
        return;
    }
    kube_find(judge, "hostUsers", can_here ? MACHINE_GOOD : MACHINE_LESS,
              "root of a task is root of its node, without most of its capabilities: the cluster "
              "gives pods in their node's network no user ids of their own",
              can_here ? "offered, with the node's network too"
              : can    ? "offered, but not with the node's network: network: pod has them"
                       : "not offered");
}

/* --- what else there is --- */

static void watch_list_check(struct kube_judge *judge)
{
    cleanup_reply struct kube_reply reply = {0};
    kube_ask_send(judge->ask,
                  "/api/v1/nodes?watch=true&sendInitialEvents=true&allowWatchBookmarks=true"
                  "&resourceVersionMatch=NotOlderThan&timeoutSeconds=5",
                  NULL, true, &reply);
    if (reply.status == STATUS_FORBIDDEN)
        kube_find(judge, "WatchList", MACHINE_UNKNOWN, needs_admin, "nodes cannot be watched");
    else
        kube_find(judge, "WatchList", MACHINE_GOOD, "",
                  is_good(&reply) ? "offered" : "not offered; lists are read by pages");
}

/* What nodes use, as engine/kubernetes/node_ask.c asks for it. */
static void metrics_check(struct kube_judge *judge)
{
    cleanup_reply struct kube_reply reply = {0};
    cleanup_buf struct buf path = BUF_INIT;
    static const char lacks[] = "charts of nodes have no processors and no memory: ";
    if (!judge->wants->has_metrics)
        return;
    buf_string(&path, "/apis/metrics.k8s.io/v1beta1/nodes?limit=500&labelSelector=");
    client_encode(&path, judge->wants->selector);
    ask(judge, buf_cstr(&path), NULL, &reply);
    const size_t count = json_array_size(json_object_get(reply.json, "items"));
    if (is_good(&reply) && count > 0)
        kube_find(judge, "node metrics", MACHINE_GOOD, "", "of %zu node%s", count,
                  count == 1 ? "" : "s");
    else if (is_good(&reply))
        kube_find(judge, "node metrics", MACHINE_LESS,
                  arena_format(judge->arena, "%swait until metrics-server has read them", lacks),
                  "of no node");
    else if (reply.status == STATUS_FORBIDDEN)
        kube_find(judge, "node metrics", MACHINE_UNKNOWN, needs_admin,
                  "nodes of metrics.k8s.io cannot be listed");
    else if (reply.status == STATUS_NOT_FOUND)
        kube_find(judge, "node metrics", MACHINE_LESS,
                  arena_format(judge->arena, "%sinstall metrics-server", lacks),
                  "there is no metrics.k8s.io/v1beta1");
    else
        kube_find(judge, "node metrics", MACHINE_LESS,
                  arena_format(judge->arena, "%ssee that metrics-server runs", lacks), "%.118s",
                  reply.trouble);
}

static void storage_check(struct kube_judge *judge)
{
    cleanup_reply struct kube_reply reply = {0};
    const char *first = NULL, *chosen = NULL;
    const json_t *item;
    size_t i;
    ask(judge, "/apis/storage.k8s.io/v1/storageclasses", NULL, &reply);
    if (!is_good(&reply)) {
        kube_find(judge, "storage class", MACHINE_UNKNOWN, needs_admin, "%.110s", reply.trouble);
        return;
    }
    json_array_foreach (json_object_get(reply.json, "items"), i, item) {
        const json_t *metadata = json_object_get(item, "metadata");
        const char *is_default = field_text(json_object_get(metadata, "annotations"),
                                            "storageclass.kubernetes.io/is-default-class");
        const char *name = field_text(metadata, "name");
        first = first ? first : name;
        if (is_default && strcmp(is_default, "true") == 0)
            chosen = name;
    }
    kube_find(judge, "storage class", chosen ? MACHINE_GOOD : MACHINE_LESS,
              first ? "no class is the default: name one for skepd's own volume (storageClassName)"
                    : "skepd's own volume needs a volume made by hand, or skepd runs outside of "
                      "the cluster",
              "%.110s",
              chosen  ? chosen
              : first ? first
                      : "none");
}

static void runtime_class_check(struct kube_judge *judge)
{
    cleanup_reply struct kube_reply reply = {0};
    const char *name = judge->wants->runtime_class;
    if (!name[0])
        return;
    ask(judge, arena_format(judge->arena, "/apis/node.k8s.io/v1/runtimeclasses/%s", name), NULL,
        &reply);
    if (is_good(&reply))
        kube_find(judge, "runtime class", MACHINE_GOOD, "", "%.110s", name);
    else if (reply.status == STATUS_NOT_FOUND)
        kube_find(judge, "runtime class", MACHINE_MISSING,
                  "no task can run: make it, or name another", "there is no %.90s", name);
    else
        kube_find(judge, "runtime class", MACHINE_UNKNOWN, needs_admin, "%.110s", name);
}

size_t kube_check(struct kube_ask *to, const struct kube_wants *wants, struct arena *arena,
                  struct machine_finding findings[KUBE_FINDINGS_MAX])
{
    struct kube_judge judge = {to, wants, arena, findings, 0};
    assert(wants->space && wants->selector);
    if (!server_check(&judge))
        return judge.count;
    rights_check(&judge);
    if (space_check(&judge)) {
        pod_check(&judge);
        host_users_check(&judge);
    }
    runtime_class_check(&judge);
    kube_nodes_check(&judge);
    watch_list_check(&judge);
    metrics_check(&judge);
    storage_check(&judge);
    return judge.count;
}
