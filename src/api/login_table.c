#include "api/api.h"
#include "api/login.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/secret.h"
#include <assert.h>
#include <pthread.h>

enum { SLOTS = 1024 };

struct login_table {
    pthread_mutex_t lock;
    unsigned running;
    uint64_t seed;
    struct slot {
        uint64_t key; /* hash of user and address; 0 = free */
        int64_t since_s;
        unsigned failures;
    } slots[SLOTS];
};

struct login_table *login_table_new(void)
{
    struct login_table *table = mem_zero(1, sizeof *table);
    pthread_mutex_init(&table->lock, NULL);
    secret_random(&table->seed, sizeof table->seed);
    return table;
}

void login_table_free(struct login_table *table)
{
    if (!table)
        return;
    pthread_mutex_destroy(&table->lock);
    mem_free(table);
}

/* The slot of this pair; a slot that another pair holds is taken over when its window is past.
 * NULL: held by another pair now (then the brake on numbers at one time is all there is). */
static struct slot *slot_of(struct login_table *table, struct text user, struct text address,
                            int64_t now_s)
{
    uint64_t key = text_hash(address, text_hash(user, table->seed)) | 1;
    struct slot *slot = &table->slots[(key >> 1) % SLOTS];
    bool is_past = now_s - slot->since_s >= API_LOGIN_WINDOW_S;
    if (slot->key != key && slot->key && !is_past)
        return NULL;
    if (slot->key != key || is_past)
        *slot = (struct slot){.key = key, .since_s = now_s};
    return slot;
}

int login_begin(struct login_table *table, struct text user, struct text address, int64_t now_s,
                struct err *err)
{
    int failed = 0;
    pthread_mutex_lock(&table->lock);
    const struct slot *slot = slot_of(table, user, address, now_s);
    if (slot && slot->failures >= API_LOGIN_FAILURES)
        failed = err_fail(err, ERR_BUSY, "", "too many wrong passwords: try again in %lld s",
                          (long long)(slot->since_s + API_LOGIN_WINDOW_S - now_s));
    else if (table->running >= API_LOGINS_MAX)
        failed = err_fail(err, ERR_BUSY, "", "too many logins at this moment: try again");
    else
        table->running++;
    pthread_mutex_unlock(&table->lock);
    return failed;
}

void login_end(struct login_table *table, struct text user, struct text address, int64_t now_s,
               bool is_right)
{
    pthread_mutex_lock(&table->lock);
    assert(table->running > 0);
    table->running--;
    struct slot *slot = slot_of(table, user, address, now_s);
    if (slot)
        slot->failures = is_right ? 0 : slot->failures + 1;
    pthread_mutex_unlock(&table->lock);
}
