#include "model/notice.h"
#include "base/buf.h"
#include <assert.h>
#include <stddef.h>

static const struct {
    const char *name, *state, *says;
} kinds[NOTICE_KINDS_ALL] = {
    [NOTICE_RUNNING] = {"running", "RUNNING", "is running"},
    [NOTICE_SUCCEEDED] = {"succeeded", "SUCCEEDED", "succeeded"},
    [NOTICE_STOPPED] = {"stopped", "STOPPED", "was stopped"},
    [NOTICE_FAILED] = {"failed", "FAILED", "failed"},
    [NOTICE_RETRIED] = {"retried", "RETRIED", "is tried again"},
    [NOTICE_ACCEPTED] = {"accepted", "ACCEPTED", "was accepted"},
    [NOTICE_REFUSED] = {"refused", "REFUSED", "was refused"},
};

bool notice_is_of_request(enum notice_kind kind)
{
    assert((unsigned)kind < NOTICE_KINDS_ALL);
    return kind == NOTICE_ACCEPTED || kind == NOTICE_REFUSED;
}

const char *notice_kind_name(enum notice_kind kind)
{
    assert((unsigned)kind < NOTICE_KINDS_ALL);
    return kinds[kind].name;
}

const char *notice_state_name(enum notice_kind kind)
{
    assert((unsigned)kind < NOTICE_KINDS_ALL);
    return kinds[kind].state;
}

bool notice_kind_find(struct text name, enum notice_kind *kind)
{
    assert(kind);
    for (int i = 0; i < NOTICE_KINDS; i++) {
        if (text_is(name, kinds[i].name)) {
            *kind = (enum notice_kind)i;
            return true;
        }
    }
    return false;
}

static unsigned end_of(const struct notice_row *row)
{
    switch (life_public(row->state, row->code, false)) {
    case PUBLIC_SUCCEEDED:
        return NOTICE_BIT(NOTICE_SUCCEEDED);
    case PUBLIC_STOPPED:
        return NOTICE_BIT(NOTICE_STOPPED);
    case PUBLIC_FAILED:
        return NOTICE_BIT(NOTICE_FAILED);
    case PUBLIC_WAITING:
    case PUBLIC_RUNNING:
    case PUBLIC_STOPPING:
    case PUBLIC_UNKNOWN:
        break;
    }
    return 0;
}

unsigned notice_changes(const struct notice_row *before, const struct notice_row *now)
{
    static const struct notice_row none = {.state = LIFE_CREATION_PENDING};
    unsigned changes = 0;
    assert(now && (!before || before->attempt <= now->attempt));
    if (!before)
        before = &none;
    const bool was_completed = before->state == LIFE_COMPLETED;
    if (now->launched_ms != 0 && now->launched_ms != before->launched_ms)
        changes |= NOTICE_BIT(NOTICE_RUNNING);
    if (!was_completed && now->attempt > before->attempt)
        changes |= NOTICE_BIT(NOTICE_RETRIED);
    if (!was_completed || now->attempt > before->attempt) /* else it is known already */
        changes |= end_of(now);
    return changes;
}

void notice_title(const struct notice *notice, struct buf *out)
{
    assert((unsigned)notice->kind < NOTICE_KINDS_ALL);
    const char *says = kinds[notice->kind].says;
    if (!notice_is_of_request(notice->kind))
        buf_format(out, "%s~%s %s", notice->user, notice->job_name, says);
    else if (notice->virtual_cluster[0])
        buf_format(out, "your request for the virtual cluster %s %s", notice->virtual_cluster,
                   says);
    else
        buf_format(out, "your request for an account %s", says);
}
