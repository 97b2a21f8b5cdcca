#include "api/login.h"
#include "base/address.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/secret.h"
#include <assert.h>
#include <ctype.h>
#include <pthread.h>
#include <string.h>

enum { WAYS = 8 };

struct brake {
    uint64_t key;    /* 0: free */
    int64_t last_ms; /* the newest try */
    uint32_t wrong;  /* tries, as of last_ms */
};

struct known {
    uint64_t key; /* of user and address; 0: free */
    int64_t last_ms;
};

struct login_table {
    pthread_mutex_t lock;
    uint64_t seed; /* so that nobody can choose names that share a place */
    struct brake own[LOGIN_BRAKES_MAX], devices[LOGIN_BRAKES_MAX];
    struct brake users[LOGIN_BRAKES_MAX], addresses[LOGIN_BRAKES_MAX];
    struct known known[LOGIN_KNOWN_MAX];
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

/* ---- brakes ---- */

/* Wrong tries that still count. */
static uint32_t brake_wrong(const struct brake *brake, int64_t now_ms)
{
    int64_t forgiven = (now_ms - brake->last_ms) / LOGIN_FORGET_MS;
    return forgiven >= brake->wrong ? 0 : brake->wrong - (uint32_t)forgiven;
}

static int64_t brake_wait_ms(const struct brake *brake, uint32_t free_tries, int64_t now_ms)
{
    uint32_t wrong = brake_wrong(brake, now_ms);
    int64_t delay_ms = LOGIN_DELAY_MS;
    if (wrong < free_tries)
        return 0;
    for (uint32_t i = free_tries; i < wrong && delay_ms < LOGIN_DELAY_MAX_MS; i++)
        delay_ms *= 2;
    int64_t left_ms = brake->last_ms + delay_ms - now_ms;
    return left_ms > 0 ? left_ms : 0;
}

/* The brake of this key; a new one takes the place of the one that brakes least. */
static struct brake *brake_of(struct brake *brakes, uint64_t key, int64_t now_ms)
{
    struct brake *ways = &brakes[(key >> 1) % (LOGIN_BRAKES_MAX / WAYS) * WAYS];
    struct brake *least = NULL;
    for (size_t i = 0; i < WAYS; i++) {
        if (ways[i].key == key)
            return &ways[i];
        if (!least || brake_wrong(&ways[i], now_ms) < brake_wrong(least, now_ms))
            least = &ways[i];
    }
    *least = (struct brake){.key = key, .last_ms = now_ms};
    return least;
}

static void brake_count(struct brake *brakes, uint64_t key, int64_t now_ms)
{
    struct brake *brake = brake_of(brakes, key, now_ms);
    brake->wrong = brake_wrong(brake, now_ms) + 1;
    brake->last_ms = now_ms;
}

/* The try was no guess: as if it had not been. */
static void brake_uncount(struct brake *brakes, uint64_t key, int64_t now_ms)
{
    struct brake *brake = brake_of(brakes, key, now_ms);
    if (brake->wrong)
        brake->wrong--;
}

/* ---- who has logged in before ---- */

static struct known *known_of(struct login_table *table, uint64_t key)
{
    struct known *ways = &table->known[(key >> 1) % (LOGIN_KNOWN_MAX / WAYS) * WAYS];
    struct known *oldest = ways;
    for (size_t i = 0; i < WAYS; i++) {
        if (ways[i].key == key)
            return &ways[i];
        if (!ways[i].key || (oldest->key && ways[i].last_ms < oldest->last_ms))
            oldest = &ways[i];
    }
    return oldest;
}

static uint64_t key_of(const struct login_table *table, struct text first, struct text second)
{
    return text_hash(second, text_hash(first, table->seed)) | 1;
}

/* Names of directories: typed in any case, and with a domain. */
static struct text user_name(struct text user)
{
    for (size_t i = user.length; i > 0; i--)
        if (user.at[i - 1] == '@')
            return (struct text){user.at, i - 1};
    return user;
}

bool login_is_same_user(struct text a, struct text b)
{
    const struct text one = user_name(a), other = user_name(b);
    return one.length == other.length && strncasecmp(one.at, other.at, one.length) == 0;
}

static uint64_t user_key(const struct login_table *table, struct text user, struct text second)
{
    cleanup_buf struct buf folded = BUF_INIT;
    const struct text name = user_name(user);
    for (size_t i = 0; i < name.length; i++)
        buf_char(&folded, (char)tolower((unsigned char)name.at[i]));
    return key_of(table, buf_as_text(&folded), second);
}

/* Whoever is here has millions of addresses. */
static bool is_this_machine(struct text address)
{
    static const struct address_range ranges[] = {
        {.address = {[10] = 0xff, [11] = 0xff, [12] = 127}, .bits = 104}, /* 127.0.0.0/8 */
        {.address = {[15] = 1}, .bits = 128},                             /* ::1 */
    };
    for (size_t i = 0; i < COUNT_OF(ranges); i++)
        if (address_range_has(&ranges[i], address))
            return true;
    return false;
}

/* One who has a /64 of IPv6 has all its addresses. */
struct text login_network(struct text address)
{
    size_t groups = 0;
    if (is_this_machine(address))
        return TEXT("127.0.0.1");
    if (text_starts(address, TEXT("::"))) /* one of IPv4 */
        return address;
    for (size_t i = 0; i < address.length; i++)
        if (address.at[i] == ':' &&
            (++groups == 4 || (i + 1 < address.length && address.at[i + 1] == ':')))
            return (struct text){address.at, i};
    return address;
}

void login_known_add(struct login_table *table, struct text user, struct text address,
                     int64_t at_ms)
{
    const uint64_t key = user_key(table, user, login_network(address));
    pthread_mutex_lock(&table->lock);
    struct known *known = known_of(table, key);
    if (!known->key || known->last_ms < at_ms)
        *known = (struct known){key, at_ms};
    pthread_mutex_unlock(&table->lock);
}

/* ---- tries ---- */

static int64_t longer(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t key_wait_ms(struct brake *brakes, uint64_t key, uint32_t free_tries, int64_t now_ms)
{
    return key ? brake_wait_ms(brake_of(brakes, key, now_ms), free_tries, now_ms) : 0;
}

static int64_t try_wait_ms(struct login_table *table, const struct login_try *attempt,
                           int64_t now_ms)
{
    const int64_t own_ms =
        longer(key_wait_ms(table->own, attempt->own, LOGIN_FREE, now_ms),
               key_wait_ms(table->devices, attempt->devices, LOGIN_FREE_DEVICES, now_ms));
    const int64_t others_ms =
        longer(key_wait_ms(table->users, attempt->user, LOGIN_FREE, now_ms),
               key_wait_ms(table->addresses, attempt->address, LOGIN_FREE_ADDRESS, now_ms));
    return longer(own_ms, others_ms);
}

/* Which brakes this try moves. Whoever has stolen a token makes its owner wait by it, but not where
 * the owner is known without. */
static void try_init(struct login_table *table, const struct login_who *who, int64_t now_ms,
                     struct login_try *attempt)
{
    const struct text network = login_network(who->address);
    const uint64_t pair = user_key(table, who->user, network);
    *attempt = (struct login_try){.pair = pair};
    if (who->device) {
        attempt->own = user_key(table, who->user, text_of(who->device));
        attempt->devices = user_key(table, who->user, TEXT(""));
        if (!try_wait_ms(table, attempt, now_ms))
            return;
    }
    if (known_of(table, pair)->key == pair) {
        *attempt = (struct login_try){.pair = pair, .own = pair};
    } else if (!who->device) {
        attempt->user = user_key(table, who->user, TEXT(""));
        attempt->address = key_of(table, TEXT(""), network);
    }
}

/* For each brake that the try moves beside the one of its own. */
static void shared_count(struct login_table *table, const struct login_try *attempt, int64_t now_ms,
                         void (*count)(struct brake *brakes, uint64_t key, int64_t now_ms))
{
    if (attempt->devices)
        count(table->devices, attempt->devices, now_ms);
    if (attempt->user) {
        count(table->users, attempt->user, now_ms);
        count(table->addresses, attempt->address, now_ms);
    }
}

int login_begin(struct login_table *table, const struct login_who *who, int64_t now_ms,
                struct login_try *attempt, int64_t *wait_s, struct err *err)
{
    pthread_mutex_lock(&table->lock);
    try_init(table, who, now_ms, attempt);
    const int64_t wait_ms = try_wait_ms(table, attempt, now_ms);
    if (!wait_ms) {
        if (attempt->own)
            brake_count(table->own, attempt->own, now_ms);
        shared_count(table, attempt, now_ms, brake_count);
    }
    pthread_mutex_unlock(&table->lock);
    *wait_s = (wait_ms + 999) / 1000;
    if (wait_ms)
        return err_fail(err, ERR_BUSY, "", "too many wrong passwords: try again in %lld s",
                        (long long)*wait_s);
    return 0;
}

void login_end(struct login_table *table, const struct login_try *attempt, int64_t now_ms,
               bool is_tried, bool is_right)
{
    assert(is_tried || !is_right);
    pthread_mutex_lock(&table->lock);
    if (is_right) {
        *known_of(table, attempt->pair) = (struct known){attempt->pair, now_ms};
        if (attempt->own)
            brake_of(table->own, attempt->own, now_ms)->wrong = 0;
    } else if (!is_tried && attempt->own) {
        brake_uncount(table->own, attempt->own, now_ms);
    }
    if (is_right || !is_tried)
        shared_count(table, attempt, now_ms, brake_uncount);
    pthread_mutex_unlock(&table->lock);
}
