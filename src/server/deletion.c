#include "server/deletion.h"
#include "base/err.h"
#include "server/state.h"
#include "sys/clock.h"
#include <assert.h>

int64_t deletion_due(const struct server *server)
{
    const struct deletion *deletion = &server->core.deletion;
    if (store_deletions_waiting(server->store) > 0)
        return deletion->retry_ms;
    return store_deletions(server->store) > 0 ? deletion->refused_ms : INT64_MAX;
}

void deletion_go_on(struct server *server, bool is_idle)
{
    struct deletion *deletion = &server->core.deletion;
    const int64_t now_ms = clock_monotonic_ms();
    assert(server->core.core);
    if (now_ms < deletion_due(server))
        return;
    if (!is_idle && now_ms - deletion->last_ms < DELETION_WAIT_MS)
        return;
    struct store_change change = {.kind = CHANGE_DELETIONS};
    const struct store_batch batch = {.changes = &change, .change_count = 1, .keeps_reserve = true};
    struct err err;
    const int code = store_commit(server->store, &batch, &err);
    deletion->last_ms = clock_monotonic_ms();
    if (code == ERR_UNAVAILABLE && !deletion->retry_ms) /* once */
        log_warning("store", "what deleted jobs have left stays for now: %s", err.text);
    deletion->retry_ms = code < 0 ? deletion->last_ms + PROBE_MS : 0;
    if (code < 0)
        deletion->refused_ms = deletion->last_ms + UPKEEP_MS;
}
