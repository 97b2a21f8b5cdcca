/* node_ask.c — asks the resource metrics API what the nodes use of their processors and memory.
 *
 * One list for all of Skep's nodes, every KUBE_METRICS_AGAIN_MS, as a call of the client's, which
 * is cut into its objects as it comes. Where it fails it is asked more and more rarely.
 * docs/rfc/0017-kubernetes-engine.md, "What nodes use".
 */
#include <string.h>

#include "base/err.h"
#include "doc/doc.h"
#include "engine/kubernetes/object.h"
#include "engine/kubernetes/state.h"
#include "sys/clock.h"
#include "sys/log.h"

enum { STATUS_OK = 200, STATUS_FORBIDDEN = 403, STATUS_NOT_FOUND = 404, NOTHING_SAID = -1 };

static void list_ask(struct kube *kube);

/* --- what comes --- */

/* A node of the list. Those that are not Skep's, or not known yet, are passed over. */
static bool item_take(void *context, struct text item)
{
    struct kube *kube = context;
    struct node_metrics metrics;
    cleanup_arena struct arena arena;
    bool is_told;
    arena_init(&arena);
    if (!node_metrics_read(item, &metrics, &is_told))
        return false;
    const char *name = arena_copy(&arena, metrics.name);
    pthread_mutex_lock(&kube->lock);
    struct kube_node *node = kube_node_find(kube, name);
    if (node && node->is_there && is_told)
        node_use_take(&node->use, &metrics, clock_monotonic_ms(), clock_unix_ms());
    else if (node && node->is_there)
        kube->metrics.untold++;
    pthread_mutex_unlock(&kube->lock);
    return true;
}

static bool part_take(void *context, uint64_t key, struct text bytes)
{
    struct kube *kube = context;
    (void)key;
    return list_cut_take(&kube->metrics.cut, bytes);
}

/* --- what is wrong --- */

/* The API server's own trouble is in the log already. */
static bool is_servers(struct kube *kube, const struct kube_answer *answer)
{
    pthread_mutex_lock(&kube->lock);
    const bool is = answer->status == 0 && kube->trouble[0];
    pthread_mutex_unlock(&kube->lock);
    return is;
}

static void failure_log(int status, const char *trouble)
{
    static const char what[] = "what nodes use of processors and memory is not known";
    if (status == STATUS_NOT_FOUND)
        log_info("engine",
                 "kubernetes: %s: the cluster has no metrics.k8s.io/v1beta1, which metrics-server "
                 "would serve",
                 what);
    else if (status == STATUS_FORBIDDEN)
        log_warning("engine",
                    "kubernetes: %s: the right to list nodes of metrics.k8s.io is missing, which "
                    "deploy/kubernetes/rights.yaml gives: %s",
                    what, trouble);
    else
        log_warning("engine", "kubernetes: %s: %s", what, trouble);
}

static void failed(struct kube *kube, const struct kube_answer *answer, const char *trouble)
{
    uint32_t pause = 2;
    kube->metrics.failures += kube->metrics.failures < UINT32_MAX;
    for (uint32_t i = 1; i < kube->metrics.failures && pause < KUBE_METRICS_PAUSE_MAX; i++)
        pause *= 2;
    if (pause > KUBE_METRICS_PAUSE_MAX)
        pause = KUBE_METRICS_PAUSE_MAX;
    kube->metrics.due_ms = kube->metrics.begun_ms + (int64_t)pause * kube->metrics.again_ms;
    if (answer->status == kube->metrics.said_status || is_servers(kube, answer))
        return;
    kube->metrics.said_status = answer->status;
    failure_log(answer->status, trouble);
}

static void succeeded(struct kube *kube)
{
    kube->metrics.due_ms = kube->metrics.begun_ms + kube->metrics.again_ms;
    kube->metrics.failures = 0;
    if (kube->metrics.said_status != NOTHING_SAID)
        log_info("engine", "kubernetes: what nodes use of processors and memory is told again");
    kube->metrics.said_status = NOTHING_SAID;
    if (kube->metrics.untold > 0 && !kube->metrics.is_untold_said)
        log_warning("engine",
                    "kubernetes: metrics.k8s.io says nothing that is understood of what %zu of the "
                    "nodes use",
                    kube->metrics.untold);
    kube->metrics.is_untold_said = kube->metrics.untold > 0;
}

/* What is wrong with the answer; NULL: nothing. *is_last: no other page follows. */
static const char *page_end(struct kube *kube, const struct kube_answer *answer,
                            struct arena *arena, bool *is_last)
{
    cleanup_problems struct problems problems;
    struct feed *feed = &kube->metrics.feed;
    struct text metadata;
    struct err err;
    *is_last = true;
    problems_init(&problems, arena);
    if (answer->status != STATUS_OK && answer->status != 0)
        return feed_refusal(feed, answer->status, answer->body, arena);
    if (list_cut_end(&kube->metrics.cut, &metadata, &err) < 0)
        return answer->status == 0 && kube->metrics.cut.state != LIST_CUT_BROKEN
                   ? arena_copy(arena, text_of(answer->trouble))
                   : arena_copy(arena, text_of(err.text));
    const struct doc *doc = doc_parse(metadata, DOC_JSON, arena, &problems);
    if (!doc || problems.error_count > 0)
        return "the list's metadata is no JSON";
    *is_last = feed_page_took(feed, doc);
    if (!*is_last && (feed_is_first_page(feed) || ++kube->metrics.pages >= KUBE_METRICS_PAGES_MAX))
        return "the list names a next page that cannot be asked for";
    return NULL;
}

static void list_done(void *context, uint64_t key, const struct kube_answer *answer)
{
    struct kube *kube = context;
    cleanup_arena struct arena arena;
    bool is_last;
    (void)key;
    arena_init(&arena);
    const char *trouble = page_end(kube, answer, &arena, &is_last);
    list_cut_clear(&kube->metrics.cut);
    if (trouble)
        failed(kube, answer, trouble);
    else if (is_last)
        succeeded(kube);
    else
        list_ask(kube);
}

/* --- asking --- */

static void list_ask(struct kube *kube)
{
    struct kube_call call = {
        .method = "GET", .is_next = true, .context = kube, .part = part_take, .done = list_done};
    feed_request(&kube->metrics.feed, 0, &call.path);
    kube_client_send(kube->client, &call, 0);
}

static void look(void *context, uint64_t key, const struct kube_answer *answer);

static void look_later(struct kube *kube)
{
    const struct kube_call call = {.context = kube, .done = look};
    kube_client_send(kube->client, &call, kube->metrics.again_ms / KUBE_METRICS_LOOKS);
}

/* Not before the nodes are known, as figures of others count for nobody; and one at a time. */
static void look(void *context, uint64_t key, const struct kube_answer *answer)
{
    struct kube *kube = context;
    const int64_t now_ms = clock_monotonic_ms();
    (void)key, (void)answer;
    pthread_mutex_lock(&kube->lock);
    const bool are_nodes_known = kube->follows[FOLLOW_NODES].is_synced;
    pthread_mutex_unlock(&kube->lock);
    if (are_nodes_known && now_ms >= kube->metrics.due_ms) {
        const struct feed *nodes = &kube->follows[FOLLOW_NODES].feed;
        feed_init(&kube->metrics.feed, "/apis/metrics.k8s.io/v1beta1/nodes", nodes->selector);
        kube->metrics.feed.is_paged = true;
        kube->metrics.begun_ms = now_ms;
        kube->metrics.due_ms = INT64_MAX; /* until it is answered */
        kube->metrics.pages = 0;
        kube->metrics.untold = 0;
        list_ask(kube);
    }
    look_later(kube);
}

void kube_metrics_hurry(struct kube *kube)
{
    if (kube->metrics.failures > 0 && kube->metrics.due_ms < INT64_MAX)
        kube->metrics.due_ms = 0;
}

void kube_metrics_start(struct kube *kube)
{
    if (kube->metrics.is_off)
        return;
    kube->engine.capabilities |= ENGINE_CAN(ENGINE_CAN_NODE_STATS);
    kube->metrics.said_status = NOTHING_SAID;
    kube->metrics.cut.context = kube;
    kube->metrics.cut.item = item_take;
    look_later(kube);
}

void kube_metrics_release(struct kube *kube)
{
    list_cut_clear(&kube->metrics.cut);
}

/* --- what is known --- */

int kube_node_stats(struct engine *engine, const char *name, struct engine_stats *stats,
                    struct err *err)
{
    struct kube *kube = (struct kube *)engine;
    const int64_t now_ms = clock_monotonic_ms();
    int code = engine_need(engine, ENGINE_CAN_NODE_STATS, err);
    if (code < 0)
        return code;
    *stats = (struct engine_stats){.has_only_gpus = true, .has_no_disk = true};
    pthread_mutex_lock(&kube->lock);
    const struct kube_node *node = kube_node_find(kube, name);
    if (node && node->is_there && node_use_is_known(&node->use, now_ms)) {
        stats->has_only_gpus = false;
        stats->cpu_ns = node_use_cpu_ns(&node->use, now_ms);
        stats->memory_bytes = (uint64_t)node->use.memory_bytes;
    }
    if (node && node->is_there)
        kube_node_gpus_add(kube, node, stats);
    pthread_mutex_unlock(&kube->lock);
    if (stats->has_only_gpus && stats->gpu_count == 0)
        return err_fail(err, ERR_NOT_FOUND, "", "what %.100s uses is not known now", name);
    return 0;
}
