/* simple_course.c — a plain placer's search for many tasks, in pieces: "One large part" in
 * docs/rfc/0016-gangs-in-steps.md. Each piece does a slice of work, whatever its stages are. */
#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "placement/simple_choice.h"
#include "placement/simple_parts.h"
#include "placement/simple_victims.h"

bool simple_course_is_of(const struct simple *simple, const char *group)
{
    return simple->course.group && strcmp(simple->course.group, group) == 0;
}

void simple_course_close(struct simple *simple)
{
    struct simple_course *course = &simple->course;
    if (!course->group)
        return;
    mem_free(course->group);
    mem_free(course->avoid);
    mem_free(course->gang);
    mem_free(course->slots);
    simple_choice_free(simple, course->choice);
    mem_free(course->is_victim);
    for (size_t i = 0; i < course->victims.count; i++)
        mem_free(course->victims.items[i]);
    ARRAY_FREE(&course->victims);
    ARRAY_FREE(&course->left);
    *course = (struct simple_course){0};
}

static void course_begin(struct simple *simple, const struct placement_request *request)
{
    struct simple_course *course = &simple->course;
    simple_course_close(simple);
    course->group = mem_copy(request->group);
    course->stage = request->avoid_count ? COURSE_FREE_AVOIDING : COURSE_FREE;
    course->avoid = mem_copy_array(request->avoid, request->avoid_count, sizeof *request->avoid);
    course->avoid_count = request->avoid_count;
    course->gang = mem_alloc(sizeof *course->gang);
    simple_gang_order(request, course->gang);
    for (size_t i = 0; i < request->member_count; i++)
        course->slot_count += request->members[i].count;
    course->slots = mem_alloc(mem_size(course->slot_count + 1, sizeof *course->slots));
}

/* The next tasks of the gang, on the views that its stage has made. */
static enum simple_outcome tasks_place(const struct simple_search *search,
                                       struct simple_course *course, uint64_t *left)
{
    if (!course->is_begun && !simple_gang_begin(search, course->gang, left))
        return SIMPLE_FAILS;
    course->is_begun = true;
    const enum simple_outcome outcome = simple_gang_go_on(search, course->gang, left);
    course->is_begun = outcome == SIMPLE_CUT;
    return outcome;
}

static void free_go_on(struct simple_search *search, struct simple_course *course, uint64_t *left)
{
    search->avoids = course->stage == COURSE_FREE_AVOIDING;
    struct simple *simple = search->simple;
    const bool is_short = !course->is_begun && !simple_gang_is_unequal(search->request) &&
                          !simple_equal_fits(search, simple->offered);
    enum simple_outcome outcome = SIMPLE_FAILS;
    if (is_short) {
        simple_work_take(left, simple->nodes.count);
    } else {
        if (!course->is_begun)
            simple_views_fill(simple, simple->offered);
        outcome = tasks_place(search, course, left);
    }
    if (outcome == SIMPLE_PLACED)
        course->stage = COURSE_BIND;
    else if (outcome == SIMPLE_FAILS)
        course->stage = search->avoids ? COURSE_FREE : COURSE_VICTIMS;
}

/* Is nobody a victim, or have all ended by themselves since they were chosen? */
static bool victims_are_gone(const struct simple *simple)
{
    const struct simple_course *course = &simple->course;
    const size_t count = course->group_count;
    assert(count <= simple->groups.count);
    size_t at = simple_victim_next(course->is_victim, count, 0);
    while (at < count && !simple->groups.items[at].name)
        at = simple_victim_next(course->is_victim, count, at + 1);
    return at == count;
}

static void victims_go_on(const struct simple_search *search, struct simple_course *course,
                          uint64_t *left)
{
    if (!course->choice) {
        course->group_count = search->simple->groups.count;
        course->is_victim = mem_zero(course->group_count + 1, sizeof *course->is_victim);
    }
    bool is_placed;
    const enum simple_outcome outcome =
        simple_victims_go_on(search, &course->choice, course->is_victim, &is_placed, left);
    if (outcome == SIMPLE_FAILS)
        course->stage = COURSE_NEVER;
    else if (outcome == SIMPLE_PLACED && !is_placed)
        course->stage = COURSE_PLACE;
    else if (outcome == SIMPLE_PLACED) /* others may be free than the policy has found at first */
        course->stage = victims_are_gone(search->simple) ? COURSE_BIND : COURSE_NAME;
}

static void places_go_on(const struct simple_search *search, struct simple_course *course,
                         uint64_t *left)
{
    const enum simple_outcome outcome = tasks_place(search, course, left);
    assert(outcome != SIMPLE_FAILS); /* the room was counted */
    if (outcome == SIMPLE_PLACED)
        course->stage = COURSE_NAME;
}

static void never_go_on(const struct simple_search *search, struct simple_course *course,
                        uint64_t *left)
{
    const struct simple_search empty = simple_search_empty(search);
    enum simple_outcome outcome;
    if (!simple_gang_is_unequal(search->request)) {
        outcome = simple_gang_is_possible(search) ? SIMPLE_PLACED : SIMPLE_FAILS;
        simple_work_take(left, search->simple->nodes.count);
    } else {
        if (!course->is_begun)
            simple_views_fill(search->simple, search->simple->whole);
        outcome = tasks_place(&empty, course, left);
    }
    course->is_never = outcome == SIMPLE_FAILS;
    if (outcome != SIMPLE_CUT)
        course->stage = COURSE_WAIT;
}

/* One that has ended since they were chosen is passed over. */
static void victims_name(const struct simple *simple, struct simple_course *course, uint64_t *left)
{
    while (*left) {
        course->next = simple_victim_next(course->is_victim, course->group_count, course->next);
        if (course->next == course->group_count) {
            course->stage = COURSE_PREEMPT;
            return;
        }
        const char *name = simple->groups.items[course->next++].name;
        if (!name)
            continue;
        *ARRAY_ADD(&course->victims) = mem_copy(name);
        simple_work_take(left, WORK_OF_NAME);
    }
}

static void stage_go_on(struct simple_search *search, struct simple_course *course, uint64_t *left)
{
    switch (course->stage) {
    case COURSE_FREE_AVOIDING:
    case COURSE_FREE:
        free_go_on(search, course, left);
        break;
    case COURSE_VICTIMS:
        victims_go_on(search, course, left);
        break;
    case COURSE_PLACE:
        places_go_on(search, course, left);
        break;
    case COURSE_NAME:
        victims_name(search->simple, course, left);
        break;
    case COURSE_NEVER:
        never_go_on(search, course, left);
        break;
    case COURSE_PREEMPT:
    case COURSE_BIND:
    case COURSE_WAIT:
    case COURSE_AGAIN: /* simple_course_again */
        break;
    }
}

static bool course_is_over(const struct simple_course *course)
{
    return course->stage == COURSE_BIND || course->stage == COURSE_PREEMPT ||
           course->stage == COURSE_WAIT;
}

enum simple_outcome simple_course_go_on(struct simple *simple,
                                        const struct placement_request *request, uint32_t *work)
{
    struct simple_course *course = &simple->course;
    const uint64_t most = (uint64_t)request->slice * WORK_OF_SLICE;
    uint64_t left = most;
    /* when all victims have ended there may be room without ending anybody */
    const bool has_victims = course->stage == COURSE_NAME || course->stage == COURSE_PREEMPT;
    if (!simple_course_is_of(simple, request->group) || (has_victims && victims_are_gone(simple)))
        course_begin(simple, request);
    const bool was_over = course_is_over(course);
    struct placement_request own = *request;
    own.avoid = course->avoid;
    own.avoid_count = course->avoid_count;
    struct simple_search search = {.simple = simple, .request = &own, .slots = course->slots};
    course->named = course->victims.count;
    while (left && !course_is_over(course))
        stage_go_on(&search, course, &left);
    *work = (uint32_t)((most - left) / WORK_OF_SLICE);
    if (!course_is_over(course))
        return SIMPLE_CUT;
    /* the answer for many tasks is a piece of its own */
    if (!was_over && course->slot_count > 1 && course->slot_count * WORK_OF_TASK > left)
        return SIMPLE_CUT;
    return course->stage == COURSE_WAIT ? SIMPLE_FAILS : SIMPLE_PLACED;
}

/* Whoever has ended is forgotten: a large group that takes its places has no names to free. */
static bool victim_is_left(struct simple *simple, char **name)
{
    if (!*name)
        return false;
    if (simple_group_find(simple, *name))
        return true;
    mem_free(*name);
    *name = NULL;
    return false;
}

enum simple_outcome simple_course_again(struct simple *simple, struct simple_group *waiting,
                                        uint32_t victims)
{
    struct simple_course *course = &simple->course;
    assert(waiting->is_waiting && victims > 0);
    const bool is_begun = simple_course_is_of(simple, waiting->name);
    if (!is_begun) {
        simple_course_close(simple);
        course->group = mem_copy(waiting->name);
        course->stage = COURSE_AGAIN;
    }
    assert(course->stage == COURSE_AGAIN); /* it has found its places */
    const size_t most = course->next + victims, count = waiting->victim_count;
    const bool was_over = is_begun && course->next == count;
    for (course->named = course->left.count; course->next < count && course->next < most;
         course->next++)
        if (victim_is_left(simple, &waiting->victims[course->next]))
            *ARRAY_ADD(&course->left) = (uint32_t)course->next;
    /* to take many places is a piece of its own */
    if (course->next < count || (!was_over && waiting->slot_count > victims))
        return SIMPLE_CUT;
    return course->left.count ? SIMPLE_PLACED : SIMPLE_FAILS;
}

void simple_course_copy(struct simple *to, const struct simple *from)
{
    const struct simple_course *course = &from->course;
    const size_t nodes = from->nodes.count;
    if (!course->group)
        return;
    to->course = *course;
    to->course.group = mem_copy(course->group);
    to->course.avoid = mem_copy_array(course->avoid, course->avoid_count, sizeof *course->avoid);
    to->course.gang = mem_copy_array(course->gang, 1, sizeof *course->gang);
    to->course.slots = mem_copy_array(course->slots, course->slot_count + 1, sizeof *course->slots);
    to->course.is_victim =
        mem_copy_array(course->is_victim, course->group_count + 1, sizeof *course->is_victim);
    to->course.choice = simple_choice_copy(to, from);
    ARRAY_COPY(&to->course.left, &course->left);
    to->course.victims.items = NULL;
    to->course.victims.count = to->course.victims.room = 0;
    for (size_t i = 0; i < course->victims.count; i++)
        *ARRAY_ADD(&to->course.victims) = mem_copy(course->victims.items[i]);
    if (nodes > 0) { /* where the search stands */
        memcpy(to->views, from->views, nodes * sizeof *to->views);
        memcpy(to->roomy, from->roomy, nodes * sizeof *to->roomy);
        memcpy(to->choice, from->choice, nodes * sizeof *to->choice);
    }
}
