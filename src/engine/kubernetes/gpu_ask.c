/* gpu_ask.c — asks DCGM's exporters how the GPUs of their nodes are.
 *
 * One thread, which waits for nobody but them. Only nodes on which a task of Skep's has GPUs are
 * asked, each every KUBE_GPU_AGAIN_MS, and one that fails later and later. The exporter is asked
 * at the address of its node, without a proxy, over HTTP; it follows nobody's redirection.
 * docs/rfc/0017-kubernetes-engine.md, "How GPUs are used".
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"
#include "engine/kubernetes/state.h"
#include "sys/clock.h"
#include "sys/log.h"

enum { STATUS_OK = 200, IDLE_CONNECTIONS_MAX = 128 };

/* One exporter that is asked. */
struct gpu_ask {
    char *name, *url;
    CURL *easy; /* NULL: it has not begun, or is over */
    struct buf answer;
    bool is_too_big;
    char failure[CURL_ERROR_SIZE];
};

/* All that are due at one time. */
struct gpu_round {
    struct kube *kube;
    struct {
        struct gpu_ask *items;
        size_t count, room;
    } asks;
    size_t begun, over;
    size_t lost;      /* that answered before, and did not now */
    struct buf first; /* of them: which, and why */
};

/* --- who --- */

static void ask_add(struct gpu_round *round, const struct kube_node *node)
{
    const struct kube *kube = round->kube;
    const char *address = node->facts.address;
    const bool is_v6 = strchr(address, ':') != NULL;
    struct gpu_ask *ask = ARRAY_ADD(&round->asks);
    struct buf url = BUF_INIT;
    *ask = (struct gpu_ask){.name = mem_copy(node->facts.name)};
    buf_format(&url, "http://%s%s%s:%u%s", is_v6 ? "[" : "", address, is_v6 ? "]" : "",
               kube->gpu_metrics.port, kube->gpu_metrics.path);
    ask->url = buf_steal(&url);
}

/* Under the lock: on which nodes do tasks have GPUs? */
static void users_mark(struct kube *kube)
{
    for (size_t i = 0; i < kube->nodes.count; i++)
        kube->nodes.items[i].has_gpu_users = false;
    for (size_t i = 0; i < kube->tasks.count; i++) {
        const struct kube_task *task = kube->tasks.items[i];
        struct kube_node *node =
            task->gpus && task->state == TASK_RUNS ? kube_node_find(kube, task->node) : NULL;
        if (node)
            node->has_gpu_users = node->had_gpu_users = true;
    }
}

/* Those nodes, unless the cluster itself does not hear them; and once more when the last of their
 * tasks has ended, so that what it did with its GPUs is not taken for what they do now. */
static void asks_gather(struct gpu_round *round)
{
    struct kube *kube = round->kube;
    const int64_t now_ms = clock_monotonic_ms();
    pthread_mutex_lock(&kube->lock);
    users_mark(kube);
    for (size_t i = 0; i < kube->nodes.count; i++) {
        struct kube_node *node = &kube->nodes.items[i];
        if (!node->had_gpu_users || !node->is_there || node->is_silent || now_ms < node->gpu_due_ms)
            continue;
        node->had_gpu_users = node->has_gpu_users;
        node->gpu_due_ms = now_ms + KUBE_GPU_AGAIN_MS;
        ask_add(round, node);
    }
    pthread_mutex_unlock(&kube->lock);
}

/* --- one answer --- */

static void trouble_note(struct gpu_round *round, const struct gpu_ask *ask, struct kube_node *node,
                         const char *trouble)
{
    const int64_t pause_ms = (int64_t)KUBE_GPU_AGAIN_MS * (node->gpu_failures + 1);
    node->gpu_due_ms = clock_monotonic_ms() +
                       (pause_ms < KUBE_GPU_FAILED_MAX_MS ? pause_ms : KUBE_GPU_FAILED_MAX_MS);
    node->gpu_failures += node->gpu_failures < UINT16_MAX;
    if (node->gpu_failures > 1)
        return;
    if (round->lost++ == 0)
        buf_format(&round->first, "%.100s (%.200s): %.200s", ask->name, ask->url, trouble);
}

/* Takes an answer over; what is wrong with it, in `arena`; NULL: nothing. */
static const char *answer_read(const struct gpu_ask *ask, struct arena *arena,
                               const struct gpu_reading **readings, size_t *count)
{
    struct err err;
    long status = 0;
    curl_easy_getinfo(ask->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status != STATUS_OK)
        return arena_format(arena, "it answers %ld", status);
    if (gpu_text_read(buf_as_text(&ask->answer), arena, readings, count, &err) < 0)
        return arena_format(arena, "what it answers is not understood: %s", err.text);
    return *count > 0 ? NULL : "it names no GPU";
}

static const char *failure_of(const struct gpu_ask *ask, CURLcode result, struct arena *arena)
{
    if (ask->is_too_big)
        return arena_format(arena, "it answers more than %d MiB", KUBE_GPU_BYTES_MAX >> 20);
    return ask->failure[0] ? ask->failure : curl_easy_strerror(result);
}

static void ask_release(struct kube *kube, struct gpu_ask *ask)
{
    if (ask->easy) {
        curl_multi_remove_handle(kube->gpu_metrics.multi, ask->easy);
        curl_easy_cleanup(ask->easy);
    }
    ask->easy = NULL;
    buf_release(&ask->answer);
}

static void ask_over(struct gpu_round *round, struct gpu_ask *ask, CURLcode result)
{
    struct kube *kube = round->kube;
    cleanup_arena struct arena arena;
    const struct gpu_reading *readings = NULL;
    size_t count = 0;
    arena_init(&arena);
    const char *trouble = result == CURLE_OK ? answer_read(ask, &arena, &readings, &count)
                                             : failure_of(ask, result, &arena);
    pthread_mutex_lock(&kube->lock);
    struct kube_node *node = kube_node_find(kube, ask->name); /* it may have gone meanwhile */
    if (node && trouble) {
        trouble_note(round, ask, node, trouble);
    } else if (node) {
        gpu_table_take(&node->gpus, readings, count, clock_monotonic_ms());
        if (node->gpu_failures > 0)
            log_info("engine", "kubernetes: the GPUs of %.100s are told of again", ask->name);
        node->gpu_failures = 0;
    }
    pthread_mutex_unlock(&kube->lock);
    ask_release(kube, ask);
    round->over++;
}

/* --- a round --- */

static size_t bytes_take(char *bytes, size_t size, size_t count, void *context)
{
    struct gpu_ask *ask = context;
    const size_t length = size * count;
    ask->is_too_big = ask->answer.length + length > KUBE_GPU_BYTES_MAX;
    if (ask->is_too_big)
        return 0;
    buf_add(&ask->answer, bytes, length);
    return length;
}

static void ask_begin(struct kube *kube, struct gpu_ask *ask)
{
    CURL *easy = curl_easy_init();
    if (!easy)
        abort(); /* as of malloc: the event log makes that safe */
    ask->easy = easy;
    curl_easy_setopt(easy, CURLOPT_URL, ask->url);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http");
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)KUBE_GPU_CONNECT_MS);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)KUBE_GPU_ANSWER_MS);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, ask->failure);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, bytes_take);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, ask);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, ask);
    curl_multi_add_handle(kube->gpu_metrics.multi, easy);
}

static void over_take(struct gpu_round *round)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(round->kube->gpu_metrics.multi, &left))) {
        struct gpu_ask *ask = NULL;
        if (message->msg != CURLMSG_DONE)
            continue;
        const CURLcode result = message->data.result; /* the message goes with its handle */
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&ask);
        ask_over(round, ask, result);
    }
}

static bool is_ending(struct watcher *watcher)
{
    pthread_mutex_lock(&watcher->lock);
    const bool is = watcher->is_ending;
    pthread_mutex_unlock(&watcher->lock);
    return is;
}

/* Each ends by its own limits of time; all of them when the engine does. */
static void round_run(struct gpu_round *round)
{
    struct kube *kube = round->kube;
    while (round->over < round->asks.count && !is_ending(&kube->gpu_metrics.watcher)) {
        int running;
        while (round->begun < round->asks.count && round->begun - round->over < KUBE_GPU_ASKS_MAX)
            ask_begin(kube, &round->asks.items[round->begun++]);
        curl_multi_perform(kube->gpu_metrics.multi, &running);
        over_take(round);
        if (running > 0)
            curl_multi_poll(kube->gpu_metrics.multi, NULL, 0, KUBE_GPU_ANSWER_MS, NULL);
    }
    if (round->lost > 1)
        log_warning("engine", "kubernetes: nothing is told of the GPUs of %zu nodes, of %s",
                    round->lost, buf_cstr(&round->first));
    else if (round->lost == 1)
        log_warning("engine", "kubernetes: nothing is told of the GPUs of %s",
                    buf_cstr(&round->first));
}

static void round_make(struct kube *kube)
{
    struct gpu_round round = {.kube = kube};
    asks_gather(&round);
    round_run(&round);
    for (size_t i = 0; i < round.asks.count; i++) {
        ask_release(kube, &round.asks.items[i]);
        mem_free(round.asks.items[i].name);
        mem_free(round.asks.items[i].url);
    }
    ARRAY_FREE(&round.asks);
    buf_release(&round.first);
}

/* --- the thread --- */

static void *gpus_run(void *context)
{
    struct kube *kube = context;
    struct watcher *watcher = &kube->gpu_metrics.watcher;
    int64_t due_ms = clock_monotonic_ms();
    pthread_mutex_lock(&watcher->lock);
    while (!watcher->is_ending) {
        if (clock_monotonic_ms() < due_ms) {
            watcher_await(watcher, due_ms);
            continue;
        }
        pthread_mutex_unlock(&watcher->lock);
        round_make(kube);
        due_ms = clock_monotonic_ms() + KUBE_GPU_LOOK_MS;
        pthread_mutex_lock(&watcher->lock);
    }
    pthread_mutex_unlock(&watcher->lock);
    return NULL;
}

/* What may stand in the line of a request. */
static bool is_path(const char *path)
{
    bool is_good = path[0] == '/';
    for (const char *at = path; is_good && *at; at++)
        is_good = *at > ' ' && *at < 0x7f;
    return is_good;
}

int kube_gpus_start(struct kube *kube, struct err *err)
{
    if (kube->gpu_metrics.port == 0)
        return 0;
    if (!is_path(kube->gpu_metrics.path))
        return err_fail(err, ERR_INVALID, "engine.kubernetes.gpuMetrics.path",
                        "\"%.100s\" is no path of a URL: it begins with /, and has no blanks",
                        kube->gpu_metrics.path);
    kube->gpu_metrics.multi = curl_multi_init();
    if (!kube->gpu_metrics.multi)
        return err_fail(err, ERR_UNAVAILABLE, "", "libcurl has no memory");
    curl_multi_setopt(kube->gpu_metrics.multi, CURLMOPT_MAXCONNECTS, (long)IDLE_CONNECTIONS_MAX);
    kube->engine.capabilities |= ENGINE_CAN(ENGINE_CAN_STATS) | ENGINE_CAN(ENGINE_CAN_NODE_STATS) |
                                 ENGINE_CAN(ENGINE_CAN_SAMPLE_GPUS);
    return watcher_start(&kube->gpu_metrics.watcher, gpus_run, kube,
                         "the thread that asks for figures of GPUs", err);
}

void kube_gpus_stop(struct kube *kube)
{
    struct watcher *watcher = &kube->gpu_metrics.watcher;
    pthread_mutex_lock(&watcher->lock);
    watcher->is_ending = true;
    pthread_mutex_unlock(&watcher->lock);
    if (kube->gpu_metrics.multi)
        curl_multi_wakeup(kube->gpu_metrics.multi);
    watcher_stop(watcher);
    watcher_release(watcher);
    curl_multi_cleanup(kube->gpu_metrics.multi);
}
