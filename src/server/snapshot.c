#include "server/snapshot.h"
#include "base/err.h"
#include "base/memory.h"
#include "placement/hived.h"
#include "server/state.h"
#include "sys/clock.h"
#include <assert.h>

void snapshots_init(struct snapshots *snapshots)
{
    *snapshots = (struct snapshots){.last = &snapshots->first};
}

void snapshots_add(struct snapshots *snapshots, struct server_mail *mail)
{
    assert(mail->kind == MAIL_SNAPSHOT);
    mail->mail.next = NULL;
    *snapshots->last = mail;
    snapshots->last = (struct server_mail **)(void *)&mail->mail.next;
}

static struct server_mail *snapshots_take(struct snapshots *snapshots)
{
    struct server_mail *mail = snapshots->first;
    snapshots->first = (struct server_mail *)(void *)mail->mail.next;
    if (!snapshots->first)
        snapshots->last = &snapshots->first;
    snapshots->pieces = 0;
    return mail;
}

/* Small ones at first; in the end all that is left. */
static uint32_t piece_of(unsigned pieces, uint32_t small)
{
    const unsigned doublings = pieces / SNAPSHOT_PIECES;
    return doublings < 16 ? small << doublings : UINT32_MAX;
}

static void nodes_show(const struct core *core, struct service_snapshot *snapshot)
{
    const uint32_t count = core_node_count(core);
    if (!snapshot->nodes || snapshot->node_count != count) {
        mem_free(snapshot->nodes);
        snapshot->nodes = mem_alloc(mem_size(count + 1u, sizeof *snapshot->nodes));
        snapshot->node_count = count;
    }
    for (uint32_t i = 0; i < snapshot->node_count; i++)
        snapshot->nodes[i] = core_node_use(core, (struct node_id){i});
}

/* False: there is more to do. */
static bool snapshot_make(const struct core *core, struct service_snapshot *snapshot,
                          unsigned pieces)
{
    struct placer *placer = core_placer(core);
    if (!placer_hived_mirror(placer, &snapshot->hived, &snapshot->old,
                             piece_of(pieces, SNAPSHOT_CELLS)))
        return false;
    if (!core_node_jobs_update(core, &snapshot->jobs, piece_of(pieces, SNAPSHOT_TASKS)))
        return false;
    snapshot->is_making =
        !snapshot->hived && placer->ops->is_making && placer->ops->is_making(placer);
    nodes_show(core, snapshot);
    return true;
}

void snapshots_go_on(struct server *server)
{
    struct snapshots *snapshots = &server->core.snapshots;
    if (!snapshots->first)
        return;
    struct service_snapshot *snapshot = snapshots->first->snapshot;
    const int64_t begin_us = clock_monotonic_us();
    if (snapshot->core != server->core.cores) /* of one before, whose numbers say nothing */
        core_node_jobs_clear(&snapshot->jobs);
    snapshot->core = server->core.cores;
    const bool is_whole = snapshot_make(server->core.core, snapshot, snapshots->pieces++);
    const int64_t now_us = clock_monotonic_us();
    snapshot->cost_us += now_us - begin_us;
    if (!is_whole)
        return;
    struct server_mail *mail = snapshots_take(snapshots);
    snapshot->version = atomic_load(&server->core.version);
    histogram_add(&server->metrics.request, now_us - mail->posted_us);
    mail_answer(mail, &(struct service_answer){.path = "", .text = ""});
    mail_free(mail);
}

void snapshots_refuse(struct snapshots *snapshots, const char *text)
{
    while (snapshots->first) {
        struct server_mail *mail = snapshots_take(snapshots);
        mail_refuse(mail, ERR_UNAVAILABLE, text);
        mail_free(mail);
    }
}
