#include "kube/login.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/err.h"
#include "base/memory.h"
#include "kube/access.h"
#include "sys/cleanup.h"
#include "sys/clock.h"
#include "sys/file.h"

enum {
    PAUSE_FIRST_MS = 1000,
    PAUSE_DOUBLINGS = 5,
    RENEW_MS = 60 * 1000, /* before it expires; not more than a tenth of its time */
};

struct kube_login {
    const struct kube_access *access;
    void (*changed)(void *context);
    void *context;
    pthread_t thread;
    int stop; /* readable: the plugin is to be killed */
    bool has_terminal, has_thread;
    pthread_mutex_t lock;       /* of all that follows */
    pthread_cond_t wake;        /* something is wanted, or something has come */
    struct kube_credential now; /* number 0: none */
    uint64_t numbers;
    int64_t read_ms;    /* files: when they were read; of a clock that is never set */
    int64_t renew_ms;   /* plugin: when the next one is asked for, Unix time; 0: never */
    int64_t again_ms;   /* plugin: not before; of a clock that is never set */
    int64_t since_ms;   /* plugin: since when there is `now`; of that clock */
    uint32_t failures;  /* of the plugin, in a row */
    uint32_t refusals;  /* of what it said, soon after it had */
    struct err failure; /* code 0: none */
    bool is_ending, is_running;
    bool is_refused; /* the server does not take `now` any more */
    struct buf ca;   /* whom to trust; empty: as the access says */
    int64_t ca_ms;   /* when it was read; of a clock that is never set */
};

static void text_copy(struct buf *to, const struct buf *from)
{
    buf_text(to, buf_as_text(from));
}

static void credential_copy(struct kube_credential *to, const struct kube_credential *from)
{
    *to = (struct kube_credential){.number = from->number, .expires_ms = from->expires_ms};
    text_copy(&to->header, &from->header);
    text_copy(&to->certificate, &from->certificate);
    text_copy(&to->key, &from->key);
}

/* With the lock. A file that cannot be read, or that is being written and has no certificate yet,
 * leaves it what it was. */
static void ca_take(struct kube_login *login)
{
    static const struct text mark = {"-----BEGIN ", 11};
    const int64_t now = clock_monotonic_ms();
    cleanup_buf struct buf bytes = BUF_INIT;
    struct err why;
    if (!login->access->ca_path[0] || now < login->ca_ms + LOGIN_READ_MS)
        return;
    login->ca_ms = now;
    if (file_read(login->access->ca_path, ACCESS_FILE_MAX, &bytes, &why) < 0 ||
        text_find(buf_as_text(&bytes), mark) == SIZE_MAX)
        return;
    buf_clear(&login->ca);
    if (!text_equal(buf_as_text(&bytes), login->access->ca))
        text_copy(&login->ca, &bytes);
}

static bool is_same(const struct kube_credential *a, const struct kube_credential *b)
{
    return text_equal(buf_as_text(&a->header), buf_as_text(&b->header)) &&
           text_equal(buf_as_text(&a->certificate), buf_as_text(&b->certificate)) &&
           text_equal(buf_as_text(&a->key), buf_as_text(&b->key));
}

/* Takes what is in `next`. */
static void credential_put(struct kube_login *login, struct kube_credential *next)
{
    kube_credential_release(&login->now);
    login->now = *next;
    login->now.number = ++login->numbers;
    login->is_refused = false;
    *next = (struct kube_credential){0};
}

/* --- what stands in files, or in the kubeconfig --- */

static int file_or(const char *path, struct text otherwise, size_t limit, struct buf *out,
                   struct err *err)
{
    if (path[0])
        return file_read(path, limit, out, err);
    buf_text(out, otherwise);
    return 0;
}

static int files_read(const struct kube_access *access, struct kube_credential *next,
                      struct err *err)
{
    struct buf bytes = BUF_INIT;
    int code = file_or(access->token_path, text_of(access->token), LOGIN_TOKEN_MAX, &bytes, err);
    const struct text token = text_trim(buf_as_text(&bytes));
    if (code == 0 && token.length > 0)
        buf_format(&next->header, "Authorization: Bearer %.*s", TEXT_ARG(token));
    if (bytes.at)
        explicit_bzero(bytes.at, bytes.room);
    buf_release(&bytes);
    if (code == 0)
        code = file_or(access->certificate_path, access->certificate, ACCESS_FILE_MAX,
                       &next->certificate, err);
    if (code == 0)
        code = file_or(access->key_path, access->key, ACCESS_FILE_MAX, &next->key, err);
    return code;
}

static bool has_files(const struct kube_access *access)
{
    return access->token_path[0] || access->certificate_path[0] || access->key_path[0];
}

/* With the lock. What cannot be read now is what it was: the answer 401 says it if that is wrong.
 */
static int files_take(struct kube_login *login, struct err *err)
{
    const int64_t now = clock_monotonic_ms();
    const bool is_old =
        has_files(login->access) && (login->is_refused || now >= login->read_ms + LOGIN_READ_MS);
    if (login->now.number > 0 && !is_old)
        return 0;
    cleanup_credential struct kube_credential next = {0};
    struct err why = {0};
    int code = files_read(login->access, &next, &why);
    if (code < 0 && login->now.number == 0)
        return err_fail(err, code, "", "%.200s", why.text);
    login->read_ms = now;
    if (code == 0 && (login->now.number == 0 || !is_same(&next, &login->now)))
        credential_put(login, &next);
    login->is_refused = false;
    return 0;
}

/* --- the plugin --- */

static uint32_t pause_ms(uint32_t failures)
{
    const uint32_t doublings = failures - 1 < PAUSE_DOUBLINGS ? failures - 1 : PAUSE_DOUBLINGS;
    const uint32_t pause = (uint32_t)PAUSE_FIRST_MS << doublings;
    return pause < LOGIN_PAUSE_MAX_MS ? pause : LOGIN_PAUSE_MAX_MS;
}

static bool is_expired(const struct kube_credential *credential)
{
    return credential->expires_ms > 0 && clock_unix_ms() >= credential->expires_ms;
}

static bool is_good(const struct kube_login *login)
{
    return login->now.number > 0 && !login->is_refused && !is_expired(&login->now);
}

/* With the lock. */
static bool is_wanted(const struct kube_login *login, bool has_good, int64_t now)
{
    if (now < login->again_ms)
        return false;
    return !has_good || (login->renew_ms > 0 && clock_unix_ms() >= login->renew_ms);
}

static void run_failed(struct kube_login *login, const struct err *why)
{
    login->failures++;
    login->failure = *why;
    login->again_ms = clock_monotonic_ms() + pause_ms(login->failures);
}

static void run_ended(struct kube_login *login, int code, struct kube_credential *next,
                      const struct err *why)
{
    const int64_t now = clock_unix_ms();
    if (code == 0 && is_expired(next)) {
        struct err late;
        err_fail(&late, ERR_UNAVAILABLE, "",
                 "what the exec plugin %.100s of %.80s says has expired already, by the clock of "
                 "this machine",
                 login->access->plugin->command, login->access->path);
        run_failed(login, &late);
        kube_credential_release(next);
    } else if (code < 0) {
        run_failed(login, why);
    } else {
        const int64_t life = next->expires_ms - now;
        const int64_t ahead = life / 10 < RENEW_MS ? life / 10 : RENEW_MS;
        login->renew_ms = next->expires_ms > 0 ? next->expires_ms - ahead : 0;
        login->failure = (struct err){0};
        login->failures = 0;
        login->since_ms = clock_monotonic_ms();
        credential_put(login, next);
    }
}

static void *login_run(void *argument)
{
    struct kube_login *login = argument;
    pthread_mutex_lock(&login->lock);
    while (!login->is_ending) {
        if (!login->is_running) {
            pthread_cond_wait(&login->wake, &login->lock);
            continue;
        }
        pthread_mutex_unlock(&login->lock);
        struct kube_credential next = {0};
        struct err why = {0};
        int code = kube_plugin_run(login->access, login->has_terminal, login->stop, &next, &why);
        pthread_mutex_lock(&login->lock);
        run_ended(login, code, &next, &why);
        login->is_running = false;
        pthread_cond_broadcast(&login->wake);
        if (login->changed && !login->is_ending) {
            pthread_mutex_unlock(&login->lock);
            login->changed(login->context);
            pthread_mutex_lock(&login->lock);
        }
    }
    pthread_mutex_unlock(&login->lock);
    return NULL;
}

/* With the lock. */
static int plugin_take(struct kube_login *login, uint32_t *again_ms, struct err *err)
{
    const int64_t now = clock_monotonic_ms();
    const bool has_good = is_good(login); /* asked once: it may expire this moment */
    if (!login->is_running && is_wanted(login, has_good, now)) {
        login->is_running = true;
        pthread_cond_broadcast(&login->wake);
    }
    if (has_good)
        return 0;
    if (login->is_running)
        return err_fail(err, ERR_BUSY, "", "the exec plugin %.100s runs",
                        login->access->plugin->command);
    assert(login->again_ms > now); /* otherwise it would run: whoever waits hears of its end */
    *again_ms = (uint32_t)(login->again_ms - now);
    if (login->failure.code == 0)
        return err_fail(err, ERR_UNAVAILABLE, "",
                        "the server refuses what the exec plugin %.100s of %.80s says",
                        login->access->plugin->command, login->access->path);
    return err_fail(err, login->failure.code, "", "%s", login->failure.text);
}

/* --- doors --- */

static int take_locked(struct kube_login *login, struct kube_credential *credential,
                       uint32_t *again_ms, struct err *err)
{
    *again_ms = 0;
    int code = login->access->plugin ? plugin_take(login, again_ms, err) : files_take(login, err);
    if (code == 0) {
        ca_take(login);
        credential_copy(credential, &login->now);
        text_copy(&credential->ca, &login->ca);
    } else if (code != ERR_BUSY && *again_ms == 0) {
        *again_ms = PAUSE_FIRST_MS;
    }
    return code;
}

int kube_login_take(struct kube_login *login, struct kube_credential *credential,
                    uint32_t *again_ms, struct err *err)
{
    *credential = (struct kube_credential){0};
    pthread_mutex_lock(&login->lock);
    int code = take_locked(login, credential, again_ms, err);
    pthread_mutex_unlock(&login->lock);
    return code;
}

int kube_login_wait(struct kube_login *login, struct kube_credential *credential, struct err *err)
{
    uint32_t again_ms;
    int code;
    *credential = (struct kube_credential){0};
    pthread_mutex_lock(&login->lock);
    while ((code = take_locked(login, credential, &again_ms, err)) == ERR_BUSY && login->is_running)
        pthread_cond_wait(&login->wake, &login->lock);
    pthread_mutex_unlock(&login->lock);
    return code;
}

void kube_login_refused(struct kube_login *login, uint64_t number)
{
    pthread_mutex_lock(&login->lock);
    if (number == login->now.number && !login->is_refused) {
        const int64_t now = clock_monotonic_ms();
        const bool is_early = now < login->since_ms + LOGIN_PAUSE_MAX_MS;
        login->is_refused = true;
        login->refusals = is_early ? login->refusals + 1 : 0;
        /* one that is refused at once must not make the plugin run without a pause */
        if (is_early)
            login->again_ms = now + pause_ms(login->refusals);
    }
    pthread_mutex_unlock(&login->lock);
}

void kube_login_distrusted(struct kube_login *login)
{
    pthread_mutex_lock(&login->lock);
    login->ca_ms = clock_monotonic_ms() - LOGIN_READ_MS;
    pthread_mutex_unlock(&login->lock);
}

int kube_login_new(const struct kube_access *access, bool has_terminal,
                   void (*changed)(void *context), void *context, struct kube_login **out,
                   struct err *err)
{
    struct kube_login *login = mem_zero(1, sizeof *login);
    login->access = access;
    login->has_terminal = has_terminal;
    login->changed = changed;
    login->context = context;
    login->ca_ms = clock_monotonic_ms(); /* as it was read with the kubeconfig */
    pthread_mutex_init(&login->lock, NULL);
    pthread_cond_init(&login->wake, NULL);
    login->stop = eventfd(0, EFD_CLOEXEC);
    int code = login->stop < 0 ? err_fail(err, ERR_UNAVAILABLE, "", "no descriptor is left") : 0;
    if (code == 0 && access->plugin) {
        login->has_thread = pthread_create(&login->thread, NULL, login_run, login) == 0;
        if (!login->has_thread)
            code = err_fail(err, ERR_UNAVAILABLE, "", "no thread can be made");
    }
    if (code < 0) {
        kube_login_free(login);
        return code;
    }
    *out = login;
    return 0;
}

void kube_login_free(struct kube_login *login)
{
    if (!login)
        return;
    if (login->has_thread) {
        pthread_mutex_lock(&login->lock);
        login->is_ending = true;
        pthread_cond_broadcast(&login->wake);
        pthread_mutex_unlock(&login->lock);
        const ssize_t told = eventfd_write(login->stop, 1);
        assert(told == 0);
        (void)told;
        pthread_join(login->thread, NULL);
    }
    if (login->stop >= 0)
        close(login->stop);
    kube_credential_release(&login->now);
    buf_release(&login->ca);
    pthread_cond_destroy(&login->wake);
    pthread_mutex_destroy(&login->lock);
    mem_free(login);
}
