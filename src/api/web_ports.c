#include "api/web_ports.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/secret.h"
#include <assert.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>

struct web_port_entry {
    struct web_port_grant grant;
    char word[WEB_PORT_WORD_SIZE];
    bool is_session; /* else a ticket */
    int64_t end_ms;
    uint64_t number; /* in the order in which they were made */
};

struct web_ports {
    pthread_mutex_t lock; /* guards what follows */
    struct web_port_entry *items;
    size_t count, room;
    uint64_t made;
};

struct web_ports *web_ports_new(void)
{
    struct web_ports *ports = mem_zero(1, sizeof *ports);
    pthread_mutex_init(&ports->lock, NULL);
    return ports;
}

void web_ports_free(struct web_ports *ports)
{
    if (!ports)
        return;
    if (ports->room)
        secret_wipe(ports->items, ports->room * sizeof *ports->items);
    mem_free(ports->items);
    pthread_mutex_destroy(&ports->lock);
    mem_free(ports);
}

void web_port_host(const uint8_t token_key[32], struct attempt_id attempt, uint16_t port,
                   char host[WEB_PORT_ID_SIZE])
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
    uint8_t key[SECRET_KEY_SIZE], digest[SECRET_DIGEST_SIZE];
    char text[48];
    secret_key_derive(token_key, 2, "skepport", key);
    snprintf(text, sizeof text, "%llu:%u", (unsigned long long)attempt.v, port);
    secret_digest(key, text_of(text), digest);
    secret_wipe(key, sizeof key);
    for (size_t i = 0; i < WEB_PORT_ID_SIZE - 1; i++)
        host[i] = letters[digest[i] & 31];
    host[WEB_PORT_ID_SIZE - 1] = '\0';
}

/* ---- the table; with the lock ---- */

static void entry_remove(struct web_ports *ports, size_t at)
{
    assert(at < ports->count);
    ports->items[at] = ports->items[--ports->count];
    secret_wipe(&ports->items[ports->count], sizeof ports->items[0]);
}

/* What is over goes; then the oldest of a user who has too many. */
static void room_make(struct web_ports *ports, const char *user, int64_t now_ms)
{
    size_t oldest = 0, of_user = 0;
    for (size_t i = ports->count; i-- > 0;)
        if (ports->items[i].end_ms <= now_ms)
            entry_remove(ports, i);
    for (size_t i = 0; i < ports->count; i++) {
        if (strcmp(ports->items[i].grant.opener.user, user) != 0)
            continue;
        if (of_user++ == 0 || ports->items[i].number < ports->items[oldest].number)
            oldest = i;
    }
    if (of_user >= WEB_PORT_USER_GRANTS_MAX)
        entry_remove(ports, oldest);
}

static struct web_port_entry *entry_find(struct web_ports *ports, bool is_session, struct text host,
                                         struct text word, int64_t now_ms)
{
    if (word.length != WEB_PORT_WORD_SIZE - 1)
        return NULL;
    for (size_t i = 0; i < ports->count; i++) {
        struct web_port_entry *entry = &ports->items[i];
        if (entry->is_session == is_session && entry->end_ms > now_ms &&
            text_is(host, entry->grant.host) &&
            sodium_memcmp(entry->word, word.at, word.length) == 0)
            return entry;
    }
    return NULL;
}

static bool has_session(const struct web_ports *ports, const struct web_port_grant *grant)
{
    for (size_t i = 0; i < ports->count; i++) {
        const struct web_port_entry *entry = &ports->items[i];
        if (entry->is_session && strcmp(entry->grant.host, grant->host) == 0 &&
            strcmp(entry->grant.opener.user, grant->opener.user) == 0)
            return true;
    }
    return false;
}

/* ---- what is asked ---- */

static int64_t end_ms_of(const struct web_port_grant *grant, int64_t now_ms, int64_t life_s)
{
    int64_t end_ms = now_ms + life_s * 1000;
    const int64_t opener_ms = grant->opener.end_ms;
    return opener_ms && opener_ms < end_ms ? opener_ms : end_ms;
}

int web_ports_ticket(struct web_ports *ports, const struct web_port_grant *grant, int64_t now_ms,
                     char ticket[WEB_PORT_WORD_SIZE], struct err *err)
{
    int code = 0;
    assert(grant->opener.user[0] && grant->path[0] == '/' && grant->host[0]);
    pthread_mutex_lock(&ports->lock);
    room_make(ports, grant->opener.user, now_ms);
    if (ports->count >= WEB_PORT_GRANTS_MAX) {
        code = err_fail(err, ERR_BUSY, "", "%d ways into ports of tasks are open already",
                        WEB_PORT_GRANTS_MAX);
    } else {
        struct web_port_entry *entry = ARRAY_ADD(ports);
        *entry = (struct web_port_entry){.grant = *grant,
                                         .end_ms = end_ms_of(grant, now_ms, WEB_PORT_TICKET_S),
                                         .number = ports->made++};
        secret_random_word(entry->word, WEB_PORT_WORD_SIZE - 1);
        memcpy(ticket, entry->word, WEB_PORT_WORD_SIZE);
    }
    pthread_mutex_unlock(&ports->lock);
    return code;
}

bool web_ports_enter(struct web_ports *ports, struct text host, struct text ticket, int64_t now_ms,
                     char session[WEB_PORT_WORD_SIZE], struct web_port_grant *grant, bool *is_first)
{
    pthread_mutex_lock(&ports->lock);
    struct web_port_entry *entry = entry_find(ports, false, host, ticket, now_ms);
    if (entry) {
        *is_first = !has_session(ports, &entry->grant);
        entry->is_session = true;
        entry->end_ms = end_ms_of(&entry->grant, now_ms, WEB_PORT_SESSION_S);
        secret_random_word(entry->word, WEB_PORT_WORD_SIZE - 1);
        memcpy(session, entry->word, WEB_PORT_WORD_SIZE);
        *grant = entry->grant;
    }
    pthread_mutex_unlock(&ports->lock);
    return entry != NULL;
}

bool web_ports_find(struct web_ports *ports, struct text host, struct text session, int64_t now_ms,
                    struct web_port_grant *grant)
{
    pthread_mutex_lock(&ports->lock);
    const struct web_port_entry *entry = entry_find(ports, true, host, session, now_ms);
    if (entry)
        *grant = entry->grant;
    pthread_mutex_unlock(&ports->lock);
    return entry != NULL;
}

void web_ports_end(struct web_ports *ports, struct text host, struct text session)
{
    pthread_mutex_lock(&ports->lock);
    const struct web_port_entry *entry = entry_find(ports, true, host, session, INT64_MIN);
    if (entry)
        entry_remove(ports, (size_t)(entry - ports->items));
    pthread_mutex_unlock(&ports->lock);
}
