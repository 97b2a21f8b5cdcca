/* addresses.c — tasks hear where their peers are, when that is known; the table is in
 * docs/rfc/0017-kubernetes-engine.md, "Whose network a pod is in".
 *
 * skep-init is started once more in each pod, and gets the list by its standard input
 * (init/addresses.c). Each task is told once; that it has been is noted on disk, for a skepd that
 * begins anew.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/memory.h"
#include "engine/kubernetes/secret_note.h"
#include "engine/kubernetes/state.h"
#include "init/layout.h"
#include "sys/cleanup.h"
#include "sys/clock.h"
#include "sys/log.h"

enum { PAUSE_FIRST_MS = 1000, PAUSE_MAX_MS = 30 * 1000, NOTE_PATH = 440 };

/* What the tasks of a job are told, once for all of them. Under the lock. */
struct kube_addresses {
    size_t users;
    struct buf text;
};

static struct kube_addresses *list_share(struct kube_addresses *list)
{
    list->users++;
    return list;
}

static void list_drop(struct kube_addresses *list)
{
    if (!list || --list->users > 0)
        return;
    buf_release(&list->text);
    mem_free(list);
}

void task_addresses_drop(struct kube_task *task)
{
    list_drop(task->addresses.list);
    task->addresses.list = NULL;
}

static void text_take(char **text, const char *from)
{
    if (*text && strcmp(*text, from) == 0)
        return;
    mem_free(*text);
    *text = mem_copy(from);
}

bool task_address_take(const struct kube *kube, struct kube_task *task, const char *address)
{
    struct in6_addr parsed;
    if (kube->settings.network.mode == KUBE_NETWORK_HOST)
        return true;
    if (inet_pton(AF_INET, address, &parsed) == 1 || inet_pton(AF_INET6, address, &parsed) == 1)
        text_take(&task->address, address);
    return task->address != NULL;
}

/* --- notes --- */

static void note_path(const struct kube *kube, struct attempt_id attempt, char path[NOTE_PATH])
{
    snprintf(path, NOTE_PATH, "%.400s/%" PRIu64, kube->address_notes, attempt.v);
}

static int note_open(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
}

static void note_put(const struct kube *kube, struct attempt_id attempt)
{
    char path[NOTE_PATH];
    if (!kube->address_notes)
        return;
    note_path(kube, attempt, path);
    cleanup_close int fd = note_open(path);
    if (fd < 0 && errno == ENOENT && mkdir(kube->address_notes, 0700) == 0)
        fd = note_open(path);
    if (fd < 0)
        log_warning("engine",
                    "kubernetes: attempt %" PRIu64 " is told again where its peers are if skepd "
                    "begins anew: %s: %s",
                    attempt.v, path, strerror(errno));
}

void task_addresses_adopt(const struct kube *kube, struct kube_task *task)
{
    char path[NOTE_PATH];
    if (!kube->address_notes)
        return;
    note_path(kube, task->attempt, path);
    task->addresses.are_told = access(path, F_OK) == 0;
}

void task_addresses_forget(const struct kube *kube, struct attempt_id attempt)
{
    secret_note_drop(kube->address_notes, attempt);
}

/* Its pod has gone while no skepd was there to see it. */
static void note_seen(void *context, struct attempt_id attempt)
{
    struct kube *kube = context;
    if (!kube_task_find(kube, attempt))
        task_addresses_forget(kube, attempt);
}

void addresses_left(struct kube *kube)
{
    secret_note_each(kube->address_notes, note_seen, kube);
}

/* --- the program --- */

/* What it said of itself, and otherwise that it failed. */
static void end_read(struct engine_exec *exec, struct kube_telling *turn)
{
    struct engine_exec_end end = {0};
    ssize_t got = 0;
    turn->is_told = exec->ops->ended(exec, &end) && end.code == 0;
    if (turn->is_told)
        return;
    got = recv(exec->error, turn->trouble, sizeof turn->trouble - 1, MSG_DONTWAIT);
    turn->trouble[got > 0 ? got : 0] = '\0';
    turn->trouble[strcspn(turn->trouble, "\n")] = '\0';
    if (!turn->trouble[0])
        snprintf(turn->trouble, sizeof turn->trouble, "%s",
                 end.is_lost ? "the connection to its pod was lost"
                             : "skep-init could not be started in its pod");
}

/* Until all of it is with the program, and that has ended. */
static void list_send(struct engine_exec *exec, struct kube_telling *turn)
{
    const struct text text = buf_as_text(&turn->list->text); /* nobody changes it any more */
    const int64_t until_ms = clock_monotonic_ms() + KUBE_TELL_MS;
    size_t sent = 0;
    for (;;) {
        const int64_t left_ms = until_ms - clock_monotonic_ms();
        struct pollfd waits[] = {{.fd = exec->end, .events = POLLIN},
                                 {.fd = turn->kube->logs.fetch_end, .events = POLLIN},
                                 {.fd = sent < text.length ? exec->input : -1, .events = POLLOUT}};
        const int got = left_ms > 0 ? poll(waits, COUNT_OF(waits), (int)left_ms) : 0;
        if (got < 0 && errno == EINTR)
            continue;
        if (got > 0 && waits[0].revents) {
            end_read(exec, turn);
            return;
        }
        if (got <= 0 || waits[1].revents)
            break;
        const ssize_t written = send(exec->input, text.at + sent, text.length - sent, MSG_NOSIGNAL);
        if (written > 0)
            sent += (size_t)written;
        else if (written < 0 && errno != EAGAIN && errno != EINTR)
            sent = text.length; /* it has closed its end: how it ended says why */
    }
    snprintf(turn->trouble, sizeof turn->trouble, "its pod does not answer");
}

static void tell_do(struct kube_telling *turn)
{
    struct err err = {0};
    struct engine_exec *exec = NULL;
    const char *const words[] = {LAYOUT_INIT, LAYOUT_ADDRESSES, "/skep", NULL};
    const char *const nothing[] = {NULL};
    const struct engine_exec_request request = {.argv = nothing};
    if (kube_exec_words(turn->kube, turn->attempt, words, &request, &exec, &err) < 0) {
        snprintf(turn->trouble, sizeof turn->trouble, "%.180s", err.text);
        return;
    }
    list_send(exec, turn);
    exec->ops->free(exec);
}

/* --- turns --- */

static void turns_start(struct kube *kube);

static bool is_wanted(const struct kube_task *task)
{
    return task && task->state == TASK_RUNS && !task->is_kill_wanted && task->addresses.list &&
           !task->addresses.are_told;
}

/* On the client's thread, after a pause. */
static void again(void *context, uint64_t key, const struct kube_answer *answer)
{
    struct kube *kube = context;
    (void)answer;
    pthread_mutex_lock(&kube->lock);
    if (!kube->logs.is_ending)
        *ARRAY_ADD(&kube->tellings.waiting) = (struct attempt_id){key};
    turns_start(kube);
    pthread_mutex_unlock(&kube->lock);
}

static void failed(struct kube *kube, struct kube_task *task, const char *trouble)
{
    const uint32_t failures = task->addresses.failures;
    const uint32_t shift = failures < 5 ? failures : 5;
    const uint32_t pause_ms = (uint32_t)PAUSE_FIRST_MS << shift;
    const struct kube_call call = {.context = kube, .key = task->attempt.v, .done = again};
    if (failures == 0)
        log_warning("engine",
                    "kubernetes: attempt %llu is not told where its peers are, and waits: %s; "
                    "tried again",
                    (unsigned long long)task->attempt.v, trouble);
    task->addresses.failures += failures < UINT32_MAX;
    kube_client_send(kube->client, &call, pause_ms < PAUSE_MAX_MS ? pause_ms : PAUSE_MAX_MS);
}

/* Under the lock. */
static void turn_take(struct kube *kube, struct kube_telling *turn)
{
    struct kube_task *task = kube_task_find(kube, turn->attempt);
    list_drop(turn->list);
    turn->list = NULL;
    turn->attempt.v = 0;
    if (!task)
        return;
    if (turn->is_told) {
        task->addresses.are_told = true;
        task_addresses_drop(task);
    } else if (is_wanted(task)) {
        failed(kube, task, turn->trouble);
        return; /* it waits for its pause */
    }
    task->addresses.is_asked = false;
}

/* On the client's thread. */
static void turn_over(void *context, uint64_t key, const struct kube_answer *answer)
{
    struct kube *kube = context;
    (void)answer;
    pthread_mutex_lock(&kube->lock);
    for (size_t i = 0; i < KUBE_TELLINGS_MAX && !kube->logs.is_ending; i++) {
        struct kube_telling *turn = &kube->tellings.turns[i];
        if (turn->attempt.v != key)
            continue;
        if (turn->has_thread)
            pthread_join(turn->thread, NULL); /* it has told all that it does */
        turn_take(kube, turn);
    }
    turns_start(kube);
    pthread_mutex_unlock(&kube->lock);
}

static void over_send(const struct kube_telling *turn)
{
    const struct kube_call call = {
        .context = turn->kube, .key = turn->attempt.v, .done = turn_over};
    kube_client_send(turn->kube->client, &call, 0);
}

static void *turn_run(void *context)
{
    struct kube_telling *turn = context;
    tell_do(turn);
    if (turn->is_told)
        note_put(turn->kube, turn->attempt);
    over_send(turn);
    return NULL;
}

/* False: no turn is free. */
static bool turn_begin(struct kube *kube, const struct kube_task *task)
{
    for (size_t i = 0; i < KUBE_TELLINGS_MAX; i++) {
        struct kube_telling *turn = &kube->tellings.turns[i];
        if (turn->attempt.v != 0)
            continue;
        *turn = (struct kube_telling){
            .kube = kube, .attempt = task->attempt, .list = list_share(task->addresses.list)};
        turn->has_thread = pthread_create(&turn->thread, NULL, turn_run, turn) == 0;
        if (!turn->has_thread) { /* it is tried again after a pause, as others that fail */
            snprintf(turn->trouble, sizeof turn->trouble, "no thread can be made");
            over_send(turn);
        }
        return true;
    }
    return false;
}

/* Those that wait, in their order, while there are turns. */
static void turns_start(struct kube *kube)
{
    size_t done = 0;
    if (kube->logs.is_ending)
        return;
    for (; done < kube->tellings.waiting.count; done++) {
        struct kube_task *task = kube_task_find(kube, kube->tellings.waiting.items[done]);
        if (task && !is_wanted(task))
            task->addresses.is_asked = false;
        else if (task && !turn_begin(kube, task))
            break;
    }
    kube->tellings.waiting.count -= done;
    memmove(kube->tellings.waiting.items, kube->tellings.waiting.items + done,
            kube->tellings.waiting.count * sizeof *kube->tellings.waiting.items);
}

/* --- doors --- */

static void task_tell(struct kube *kube, struct kube_task *task, struct kube_addresses *list)
{
    if (task->addresses.are_told || task->state != TASK_RUNS)
        return;
    task_addresses_drop(task);
    task->addresses.list = list_share(list); /* the newest */
    if (task->addresses.is_asked)
        return;
    task->addresses.is_asked = true;
    *ARRAY_ADD(&kube->tellings.waiting) = task->attempt;
}

void kube_tell_addresses(struct engine *engine, const struct attempt_id *attempts, size_t count,
                         struct text text)
{
    struct kube *kube = (struct kube *)engine;
    struct kube_addresses *list = mem_zero(1, sizeof *list);
    list->users = 1;
    buf_text(&list->text, text);
    pthread_mutex_lock(&kube->lock);
    for (size_t i = 0; i < count; i++) {
        struct kube_task *task = kube_task_find(kube, attempts[i]);
        if (task)
            task_tell(kube, task, list);
    }
    turns_start(kube);
    list_drop(list);
    pthread_mutex_unlock(&kube->lock);
}

void kube_tellings_end(struct kube *kube)
{
    for (size_t i = 0; i < KUBE_TELLINGS_MAX; i++)
        if (kube->tellings.turns[i].attempt.v != 0 && kube->tellings.turns[i].has_thread)
            pthread_join(kube->tellings.turns[i].thread, NULL);
    pthread_mutex_lock(&kube->lock); /* the client's thread is there still */
    for (size_t i = 0; i < KUBE_TELLINGS_MAX; i++)
        list_drop(kube->tellings.turns[i].list);
    ARRAY_FREE(&kube->tellings.waiting);
    pthread_mutex_unlock(&kube->lock);
}
