/* shadow.c — see shadow.h. */
#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "core/engines.h"
#include "core/jobs.h"
#include "core/nodes.h"
#include "core/preempt.h"
#include "core/records.h"
#include "core/renew.h"
#include "core/request.h"
#include "core/reserve.h"
#include "core/shadow.h"
#include "core/tasks.h"

enum {
    COPY_PIECE = 1000, /* tasks, at most */
    PIECES_MAX = 256,  /* of one search, when nodes change at each step */
    /* in units of core->pass.work */
    WORK_OF_NODE = 12,
    WORK_OF_GROUP = 8, /* to copy it, or to end it */
    WORK_OF_SEARCH = 16,
    WORK_OF_COMMIT = 16, /* and of its undoing */
    GROUPS_ORDERED_PER_WORK = 8,
};

/* --- when what runs ends --- */

/* A limit may be as large as its file says: longer than time itself is none. */
static int64_t time_limit_ends_ms(const struct plan *plan, int64_t launched_ms)
{
    uint64_t limit_s = plan->time_limit_s;
    if (!limit_s || limit_s > (uint64_t)(INT64_MAX - launched_ms) / 1000)
        return INT64_MAX;
    return launched_ms + (int64_t)limit_s * 1000;
}

int64_t core_job_ends_ms(const struct core_job *job, int64_t now_ms)
{
    assert(job->id.v);
    const int64_t launched_ms = job->life.launched_ms;
    return time_limit_ends_ms(job->plan, launched_ms ? launched_ms : now_ms);
}

/* Cells are made by nobody there. */
bool shadow_is_untidy(struct placer *shadow)
{
    const struct placer_ops *ops = shadow->ops;
    return ops->tidy && !ops->tidy(shadow, 0) && !(ops->is_making && ops->is_making(shadow));
}

/* What is asked in pieces does that itself. */
bool shadow_tidies(struct placer *shadow, uint32_t slice)
{
    if (!shadow_is_untidy(shadow))
        return false;
    shadow->ops->tidy(shadow, slice);
    return true;
}

/* --- does the job fit? A search for each of its parts, in a copy --- */

struct fitter {
    struct core *core;
    struct placer *shadow;
    struct core_job *job;
    struct fitting *fitting;
    uint32_t slice; /* of a search */
};

/* The request for the next of its roles that waits. False: none is left. */
static bool fitting_request(struct fitter *fitter, struct arena *arena, struct request *request)
{
    struct core *core = fitter->core;
    struct core_job *job = fitter->job;
    const struct plan *plan = job->plan;
    for (uint16_t i = fitter->fitting->role; i < plan->role_count; i++) {
        fitter->fitting->role = i;
        if (plan->is_gang) {
            if (plan->roles[i].part != i)
                continue;
            request_of_part(core, job, i, arena, request);
            if (request->task_count)
                return true;
            continue;
        }
        uint32_t tasks = job_role_count(&job->life, policy_of(core, job), i), j = 0;
        while (j < tasks && !job_task_is_waiting(&job->life, policy_of(core, job),
                                                 (struct task_ref){i, (uint16_t)j}))
            j++;
        if (j == tasks)
            continue;
        const struct job_task *task = job_task_find(&job->life, (struct task_ref){i, (uint16_t)j});
        request_of_task(core, job, (struct task_ref){i, (uint16_t)j}, task ? task->task_attempt : 0,
                        arena, request);
        return true;
    }
    return false;
}

static void fitting_end(struct fitting *fitting, bool fits)
{
    fitting->stage = FITTING_UNDO;
    fitting->fits = fits;
}

/* The next piece of the search for one part, and what is bound is committed: the next part must see
 * it taken. */
static uint32_t fitting_search(struct fitter *fitter)
{
    struct core *core = fitter->core;
    struct placer *shadow = fitter->shadow;
    struct fitting *fitting = fitter->fitting;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    struct request request;
    struct placement_result result;
    if (!fitting_request(fitter, &arena, &request)) {
        fitting_end(fitting, true);
        return 1;
    }
    assert(request.task_count > 0);
    if (fitting->pieces && fitting->task_count != request.task_count) {
        shadow->ops->forget(shadow); /* the job has been scaled: this is another question */
        fitting->pieces = 0;
    }
    fitting->task_count = (uint32_t)request.task_count;
    request.placement.engine = core_engine_name(core, fitting->engine);
    request.placement.may_preempt = false;
    request.placement.slice = fitting->pieces < PIECES_MAX ? fitter->slice : 0;
    if (request.task_count <= fitter->slice && shadow_tidies(shadow, fitter->slice))
        return fitter->slice;
    const uint32_t work = WORK_OF_SEARCH + (uint32_t)request.task_count +
                          core_node_count(core) / shadow->ops->nodes_per_work;
    if (shadow->ops->place(shadow, &request.placement, &arena, &result, NULL)) {
        fitting_end(fitting, false);
        return work;
    }
    if (result.is_cut) {
        fitting->pieces++;
        return work;
    }
    fitting->pieces = 0;
    fitting->role++;
    if (result.kind == PLACEMENT_PREEMPT)
        return work; /* what it may end does not delay it */
    if (result.kind == PLACEMENT_WAIT) {
        fitting_end(fitting, false);
        return work;
    }
    request.placement.slice = 0; /* what was found is only to be kept */
    if (shadow->ops->commit(shadow, &request.placement, result.slots, result.slot_count, false,
                            NULL)) {
        shadow->ops->release_group(shadow, request.placement.group);
        fitting_end(fitting, false);
        return work;
    }
    *ARRAY_ADD(&fitting->committed) = mem_copy(request.placement.group);
    return work + WORK_OF_COMMIT + (uint32_t)request.task_count;
}

static uint32_t fitting_undo(struct fitter *fitter)
{
    struct fitting *fitting = fitter->fitting;
    struct placer *shadow = fitter->shadow;
    if (fitting->committed.count) {
        char *group = fitting->committed.items[--fitting->committed.count];
        shadow->ops->release_group(shadow, group);
        mem_free(group);
        return WORK_OF_COMMIT + fitting->task_count / 2;
    }
    if (shadow->ops->tidy && fitting->pieces++ < PIECES_MAX &&
        !shadow->ops->tidy(shadow, fitter->slice))
        return fitter->slice;
    const bool has_engines = core_engine_matters(fitter->core, fitter->job);
    if (!fitting->fits && has_engines)
        fitting->engine = core_engine_next(fitter->core, fitting->engine);
    if (fitting->fits || !has_engines || !fitting->engine) {
        fitting->stage = FITTING_OVER;
        return 1;
    }
    fitting->stage = FITTING_SEARCH;
    fitting->role = 0;
    fitting->pieces = 0;
    return 1;
}

void fitting_release(struct fitting *fitting)
{
    while (fitting->committed.count)
        mem_free(fitting->committed.items[--fitting->committed.count]);
    ARRAY_FREE(&fitting->committed);
}

/* On one engine after the other, where that matters. */
void fitting_begin(struct core *core, const struct core_job *job, struct fitting *fitting)
{
    assert(!fitting->committed.count);
    const bool has_engines = core_engine_matters(core, job);
    fitting_release(fitting);
    *fitting = (struct fitting){.stage = FITTING_SEARCH};
    if (has_engines)
        fitting->engine = core_engine_next(core, 0);
    if (has_engines && !fitting->engine)
        fitting->stage = FITTING_OVER;
}

uint32_t fitting_next(struct core *core, struct placer *shadow, struct core_job *job,
                      struct fitting *fitting, uint32_t slice)
{
    assert(fitting->stage != FITTING_OVER && shadow != core->placer && job->id.v);
    struct fitter fitter = {core, shadow, job, fitting, slice};
    return fitting->stage == FITTING_SEARCH ? fitting_search(&fitter) : fitting_undo(&fitter);
}

void fitting_stop(struct fitting *fitting)
{
    assert(fitting->stage != FITTING_OVER);
    fitting->pieces = 0;
    fitting_end(fitting, true); /* so that no other engine is looked at */
}

void fitting_copy(struct fitting *to, const struct fitting *from)
{
    *to = *from;
    ARRAY_COPY(&to->committed, &from->committed);
    for (size_t i = 0; i < from->committed.count; i++)
        to->committed.items[i] = mem_copy(from->committed.items[i]);
}

/* --- what ends and changes meanwhile --- */

static void told_add(struct core *core, enum shadow_told_kind kind, const char *group, size_t at)
{
    *ARRAY_ADD(&core->shadow_making.told) =
        (struct shadow_told){.kind = kind, .group = group ? mem_copy(group) : NULL, .at = at};
}

void shadow_told_apply(struct core *core, struct placer *placer, const struct shadow_told *told)
{
    switch (told->kind) {
    case TOLD_SLOT:
        placer->ops->release_slot(placer, told->group, told->at);
        break;
    case TOLD_GROUP:
        placer->ops->release_group(placer, told->group);
        break;
    case TOLD_CANCEL:
        placer->ops->cancel(placer, told->group);
        break;
    case TOLD_NODE:
        node_tell_placer(core, placer, (uint32_t)told->at);
        break;
    case TOLD_OWN: /* of the shadow alone: what the job itself holds */
        if (placer == core->placer)
            break;
        placer->ops->cancel(placer, told->group);
        placer->ops->release_group(placer, told->group);
        break;
    }
}

static void tell(struct core *core, enum shadow_told_kind kind, const char *group, size_t at)
{
    struct shadow_making *making = &core->shadow_making;
    if (placer_is_copied(core)) {
        told_add(core, kind, group, at);
        return;
    }
    const struct shadow_told told = {kind, (char *)(uintptr_t)group, at};
    shadow_told_apply(core, core->placer, &told);
    making->is_aged |= making->shadow != NULL;
    if (making->shadow)
        shadow_told_apply(core, making->shadow, &told);
}

void placer_release_slot(struct core *core, const char *group, size_t slot)
{
    tell(core, TOLD_SLOT, group, slot);
}

void placer_release_group(struct core *core, const char *group)
{
    tell(core, TOLD_GROUP, group, 0);
}

void placer_cancel(struct core *core, const char *group)
{
    tell(core, TOLD_CANCEL, group, 0);
}

void placer_node(struct core *core, uint32_t node)
{
    tell(core, TOLD_NODE, NULL, node);
}

bool shadow_defers(const struct core *core, const char *group)
{
    const struct shadow_making *making = &core->shadow_making;
    for (size_t i = making->told_next; i < making->told.count; i++)
        if (making->told.items[i].group && strcmp(making->told.items[i].group, group) == 0)
            return true;
    return false;
}

/* --- the stages --- */

static void stage_begin(struct core *core, enum shadow_stage stage)
{
    struct shadow_making *making = &core->shadow_making;
    assert(stage > making->stage || stage == SHADOW_END);
    making->stage = stage;
    making->next = 0;
}

static uint32_t copy_piece(const struct core *core)
{
    return core->slice < COPY_PIECE ? core->slice : COPY_PIECE;
}

/* What the job holds itself, and what is left to be given back, is nobody's in the shadow. */
static void own_tell(struct core *core)
{
    const uint32_t slot = core->shadow_making.job;
    const struct core_job *job = core_job_at(core, slot);
    for (uint32_t i = 0; i < job->hold_count; i++)
        told_add(core, TOLD_OWN, job->holds[i].group, 0);
    for (size_t i = 0; holdovers_at(core, i); i++)
        told_add(core, TOLD_OWN, holdovers_at(core, i), 0);
}

void shadow_begin(struct core *core, uint32_t job, enum shadow_purpose purpose)
{
    assert(!shadow_is_made(core) && !placer_is_renewing(core));
    core->placer->ops->forget(core->placer);
    struct shadow_making *making = &core->shadow_making;
    *making = (struct shadow_making){
        .purpose = purpose, .job = job, .stage = SHADOW_COPY, .asked_ms = core->now_ms};
    own_tell(core);
}

bool shadow_copy_piece(const struct core *core, const struct placer *from, struct placer **copy,
                       uint32_t *work)
{
    const uint32_t piece = copy_piece(core);
    /* of a small cluster it is less than a piece */
    const uint64_t most = 1 + (uint64_t)core_node_count(core) * WORK_OF_NODE +
                          (uint64_t)core_group_slots(core) * WORK_OF_GROUP;
    *work = piece;
    if (!from->ops->copy_some(from, copy, piece))
        return false;
    *work = piece < most ? piece : (uint32_t)most;
    return true;
}

static uint32_t copy_next(struct core *core)
{
    struct shadow_making *making = &core->shadow_making;
    uint32_t work;
    making->pieces++;
    if (shadow_copy_piece(core, core->placer, &making->shadow, &work))
        stage_begin(core, SHADOW_TELL);
    return work;
}

static uint32_t tell_next(struct core *core)
{
    struct shadow_making *making = &core->shadow_making;
    if (making->told_next == making->told.count) {
        ARRAY_FREE(&making->told);
        making->told_next = 0;
        stage_begin(core, SHADOW_LIST);
        return 0;
    }
    const struct shadow_told told = making->told.items[making->told_next++];
    shadow_told_apply(core, core->placer, &told);
    shadow_told_apply(core, making->shadow, &told);
    if (told.kind == TOLD_NODE)
        record_node(core, (uint32_t)told.at); /* the placer may refuse it */
    making->is_aged |= told.kind != TOLD_OWN;
    mem_free(told.group);
    return WORK_OF_GROUP;
}

/* Those that run, in the order in which they end by their time limits. The job's own ones run on:
 * what waits of it must not wait for their end. */
static uint32_t list_next(struct core *core)
{
    struct shadow_making *making = &core->shadow_making;
    if (making->next == core_group_slots(core)) {
        making->step = making->left = 1;
        stage_begin(core, SHADOW_END);
        return 0;
    }
    const uint32_t at = making->next++;
    const struct core_group *group = core_group_at(core, at);
    if (group->name && group->job != making->job)
        timers_set(&making->endings, at,
                   core_job_ends_ms(core_job_at(core, group->job), making->asked_ms));
    return 1;
}

/* End them in the shadow until the job fits: the time of that is the latest at which it can start;
 * while a job that it waits for has not started, the earliest. Doubling steps keep the searches
 * few; the bound errs on the safe side only by naming a later time, which other jobs then use. */
static uint32_t end_next(struct core *core)
{
    struct shadow_making *making = &core->shadow_making;
    struct timer ending;
    if (!making->left || !timers_take(&making->endings, INT64_MAX, &ending)) {
        if (making->starts_ms && making->endings.count) {
            making->left = UINT32_MAX; /* nothing is asked before all have ended */
            return 0;
        }
        fitting_begin(core, core_job_at(core, making->job), &making->fitting);
        stage_begin(core, SHADOW_FIT);
        /* the next search puts the nodes in order on which these have ended */
        const uint32_t work = making->ended / GROUPS_ORDERED_PER_WORK;
        making->ended = 0;
        return work;
    }
    const struct core_group *group = core_group_at(core, (uint32_t)ending.key);
    making->left--;
    making->ended++;
    making->ends_ms = ending.at_ms;
    if (!group->name)
        return 1; /* it has ended: the shadow has been told */
    making->shadow->ops->release_group(making->shadow, group->name);
    return WORK_OF_GROUP + group->slot_count;
}

/* True: it is known when the job could start, and whether at all. */
static bool fit_is_last(struct core *core)
{
    struct shadow_making *making = &core->shadow_making;
    const bool fits = making->fitting.fits;
    if (fits && !making->starts_ms)
        making->starts_ms = making->ends_ms ? making->ends_ms : INT64_MAX;
    if (!making->endings.count || (making->starts_ms && making->purpose == SHADOW_FOR_TIME))
        return true;
    making->step *= 2;
    making->left = making->step;
    stage_begin(core, SHADOW_END);
    return false;
}

static uint32_t fit_next(struct core *core)
{
    struct shadow_making *making = &core->shadow_making;
    if (making->fitting.stage == FITTING_OVER) {
        if (fit_is_last(core))
            stage_begin(core, SHADOW_MADE);
        return 0;
    }
    return fitting_next(core, making->shadow, core_job_at(core, making->job), &making->fitting,
                        core->slice);
}

/* --- the whole --- */

static void making_release(struct core *core)
{
    struct shadow_making *making = &core->shadow_making;
    for (size_t i = making->told_next; i < making->told.count; i++)
        mem_free(making->told.items[i].group);
    ARRAY_FREE(&making->told);
    timers_release(&making->endings);
    fitting_release(&making->fitting);
    *making = (struct shadow_making){0};
}

bool shadow_go_on(struct core *core, uint32_t work_end)
{
    struct shadow_making *making = &core->shadow_making;
    assert(shadow_is_made(core));
    do {
        if (making->job == NONE && making->stage > SHADOW_TELL && making->stage < SHADOW_MADE)
            stage_begin(core, SHADOW_MADE);
        switch (making->stage) {
        case SHADOW_NONE:
            break;
        case SHADOW_COPY:
            core->pass.work += copy_next(core);
            break;
        case SHADOW_TELL:
            core->pass.work += tell_next(core);
            break;
        case SHADOW_LIST:
            core->pass.work += list_next(core);
            break;
        case SHADOW_END:
            core->pass.work += end_next(core);
            break;
        case SHADOW_FIT:
            core->pass.work += fit_next(core);
            break;
        case SHADOW_MADE: {
            const struct shadow_making made = *making;
            making->shadow = NULL;
            making_release(core);
            if (made.job == NONE)
                past_placer_add(core, made.shadow);
            else
                reserve_made(core, &made);
            return true;
        }
        }
    } while (core->pass.work < work_end);
    return false;
}

void shadow_leave(struct core *core, uint32_t job)
{
    struct shadow_making *making = &core->shadow_making;
    if (!shadow_is_made(core) || making->job != job)
        return;
    making->job = NONE; /* the copy is finished all the same: the placer waits for its end */
}

void shadow_drop(struct core *core)
{
    struct shadow_making *making = &core->shadow_making;
    if (!shadow_is_made(core))
        return;
    while (making->stage == SHADOW_COPY &&
           !core->placer->ops->copy_some(core->placer, &making->shadow, UINT32_MAX))
        ;
    making->shadow->ops->free(making->shadow);
    making_release(core);
}

void shadow_copy(struct core *to, const struct core *from)
{
    assert(!shadow_is_made(to));
    const struct shadow_making *old = &from->shadow_making;
    struct shadow_making *making = &to->shadow_making;
    if (!shadow_is_made(from))
        return;
    *making = *old;
    making->shadow = NULL;
    ARRAY_COPY(&making->told, &old->told);
    for (size_t i = 0; i < old->told.count; i++)
        making->told.items[i].group = i >= old->told_next && old->told.items[i].group
                                          ? mem_copy(old->told.items[i].group)
                                          : NULL;
    making->endings = (struct timers){0};
    timers_copy(&making->endings, &old->endings);
    fitting_copy(&making->fitting, &old->fitting);
    if (old->stage != SHADOW_COPY) {
        making->shadow = old->shadow->ops->copy(old->shadow);
        return;
    }
    /* the placer stands still: the copy of it is copied again so far */
    for (uint32_t i = 0; i < old->pieces; i++)
        if (to->placer->ops->copy_some(to->placer, &making->shadow, copy_piece(from)))
            making->stage = SHADOW_TELL;
}
