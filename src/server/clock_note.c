/* clock_note.c — where the core's clock stands, kept in the store so that a restart goes on from
 * it.
 *
 * `core.time` has three words: the id of the machine's boot, what the clock from boot said, and
 * what the core's time was then, both in ms. `retention.time` is how far retention has believed the
 * time.
 */
#include "base/err.h"
#include "server/state.h"
#include "sys/clock.h"
#include <inttypes.h>
#include <string.h>

#define CORE_TIME      "core.time"
#define RETENTION_TIME "retention.time"

/* Of another boot it says nothing. */
static int core_time_read(struct server *server, struct arena *arena,
                          struct server_clock_past *past, struct err *err)
{
    struct text note;
    int64_t boot_ms, now_ms;
    int code = store_setting(server->core.reader, CORE_TIME, arena, &note, err);
    if (code < 0) /* of a server that did not note it */
        return code == ERR_NOT_FOUND ? 0 : code;
    const struct text boot_id = text_cut(&note, ' '), boot = text_cut(&note, ' ');
    if (!text_to_int64(boot, &boot_ms) || !text_to_int64(note, &now_ms))
        return err_fail(err, ERR_CORRUPT, "", "the setting %s is not a time of a boot", CORE_TIME);
    if (server->core.boot_id[0] && text_is(boot_id, server->core.boot_id)) {
        past->boot_ms = boot_ms;
        past->now_ms = now_ms;
    }
    return 0;
}

static int retention_time_read(struct server *server, struct arena *arena,
                               struct server_clock_past *past, struct err *err)
{
    struct text note;
    int code = store_setting(server->core.reader, RETENTION_TIME, arena, &note, err);
    past->trusted_ms = past->last_ms; /* of a server that did not note it */
    if (code < 0)
        return code == ERR_NOT_FOUND ? 0 : code;
    if (!text_to_int64(note, &past->trusted_ms))
        return err_fail(err, ERR_CORRUPT, "", "the setting %s is not a time", RETENTION_TIME);
    return 0;
}

int server_clock_restore(struct server *server, struct err *err)
{
    struct server_clock *clock = &server->core.clock;
    struct server_clock_past past = {0};
    cleanup_arena struct arena arena;
    arena_init(&arena);
    clock_boot_id(server->core.boot_id);
    int code = store_restore_time(server->core.reader, &past.last_ms, err);
    if (code == 0)
        code = core_time_read(server, &arena, &past, err);
    if (code == 0)
        code = retention_time_read(server, &arena, &past, err);
    if (code < 0)
        return code;
    server_clock_start(clock, &past, clock_boot_ms(), clock_unix_ms());
    server_clock_publish(server);
    return 0;
}

void server_clock_publish(struct server *server)
{
    struct server_clock *clock = &server->core.clock;
    atomic_store(&server->trusted_ms, server_clock_trusted(clock));
    atomic_store(&server->boot_began_ms, clock->now_ms - clock->boot_ms);
}

int64_t server_now_ms(const struct server *server)
{
    return atomic_load(&server->boot_began_ms) + clock_boot_ms();
}

int server_clock_forget(struct store *store, struct err *err)
{
    struct store_change change = {.kind = CHANGE_SETTING, .setting = {CORE_TIME, {0}}};
    return store_commit(store, &(struct store_batch){.changes = &change, .change_count = 1}, err);
}

void server_clock_note(struct server *server, struct server_mail *mails[CLOCK_NOTES])
{
    const struct server_clock *clock = &server->core.clock;
    for (size_t i = 0; i < CLOCK_NOTES; i++) {
        mails[i] = mail_new(MAIL_CHANGE);
        mails[i]->change.kind = CHANGE_SETTING;
    }
    mails[0]->change.setting.key = CORE_TIME;
    mails[0]->change.setting.value =
        text_of(arena_format(&mails[0]->arena, "%s %" PRId64 " %" PRId64, server->core.boot_id,
                             clock->boot_ms, clock->now_ms));
    mails[1]->change.setting.key = RETENTION_TIME;
    mails[1]->change.setting.value =
        text_of(arena_format(&mails[1]->arena, "%" PRId64, clock->trusted_ms));
}
