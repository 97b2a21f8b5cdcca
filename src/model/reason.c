#include "model/reason.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"

/* What stands where a format has a '%'. */
enum hole {
    HOLE_NUMBER, /* digits, maybe with '-' or '.' */
    HOLE_NAME,   /* of a node, a job, a user, …: no space and none of ",;()" */
    HOLE_NAMES,  /* the same with commas */
    HOLE_TIME,   /* as utc_text writes it */
    HOLE_TEXT,   /* anything */
    HOLE_REST,   /* anything, up to the end of the reason */
    HOLE_PLURAL, /* "s", or nothing: of the English alone */
};

/* Each kind of part may stand behind certain others: without that, names that people give could be
 * taken for words of ours. */
enum reason_kind {
    AT_START,
    IS_WHOLE, /* nothing but nodes behind it */
    IS_NEEDS,
    IS_DEMAND,
    IS_OF,
    IS_PLUS,
    IS_FOR,
    IS_ROOM,
    IS_CAUSE,
    IS_NEVER,
    IS_PREEMPT,
    IS_BUT,
    IS_HELD_BY,
    IS_HOLDER,
    IS_NEXT_HOLDER,
    IS_MORE_HOLDERS,
    IS_NOT_USED,
    IS_NODE,
    IS_NEXT_NODE,
    IS_MORE_NODES,
    IS_NO_ENGINE,
    IS_ENGINE,
    IS_ENGINE_END,
    IS_NEXT_ENGINE,
    IS_OTHER_ENGINES,
    KINDS,
};

#define B(kind) (1u << (kind))

enum {
    BEHIND_NOTHING = B(AT_START) | B(IS_ENGINE),
    BEHIND_ROOM = B(IS_ROOM) | B(IS_CAUSE),
    BEHIND_HOLDERS = B(IS_HOLDER) | B(IS_MORE_HOLDERS),
    BEHIND_CAUSES = BEHIND_ROOM | BEHIND_HOLDERS,
    BEHIND_ALL = B(IS_WHOLE) | BEHIND_CAUSES | B(IS_FOR) | B(IS_NEVER) | B(IS_PREEMPT) | B(IS_BUT),
    BEHIND_ENGINES = B(IS_ENGINE_END) | B(IS_OTHER_ENGINES),
    MAY_END = BEHIND_ALL | BEHIND_ENGINES | B(IS_NODE) | B(IS_MORE_NODES),
};

struct reason_line {
    const char *code, *format;
    const char *values; /* a name for each hole, with ":KIND" where it is not NUMBER or NAME */
    enum reason_kind kind;
    uint32_t behind; /* of kinds */
};

/* Of two that match at one place the first is tried first. Codes stay what they are: clients know
 * them. */
static const struct reason_line lines[] = {
    {"closedWhy", REASON_CLOSED_WHY, "cluster user since:time why:rest", IS_WHOLE, BEHIND_NOTHING},
    {"closed", REASON_CLOSED, "cluster user since:time", IS_WHOLE, BEHIND_NOTHING},
    {"opened", REASON_OPENED, "cluster", IS_WHOLE, BEHIND_NOTHING},
    {"retried", REASON_RETRIED, "time:time attempt exit name:text", IS_WHOLE, BEHIND_NOTHING},

    {"noCluster", REASON_NO_CLUSTER, "cluster", IS_WHOLE, BEHIND_NOTHING},
    {"noPin", REASON_NO_PIN, "cell policy", IS_WHOLE, BEHIND_NOTHING},
    {"noPinOf", REASON_NO_PIN_OF, "cluster cell", IS_WHOLE, BEHIND_NOTHING},
    {"pinBorrowed", REASON_PIN_BORROWED, "", IS_WHOLE, BEHIND_NOTHING},
    {"noGpuCells", REASON_NO_GPU_CELLS, "", IS_WHOLE, BEHIND_NOTHING},
    {"noCellType", REASON_NO_CELL_TYPE, "type", IS_WHOLE, BEHIND_NOTHING},
    {"noLeafType", REASON_NO_LEAF_TYPE, "type:names", IS_WHOLE, BEHIND_NOTHING},
    {"noLeafTypeOf", REASON_NO_LEAF_TYPE_OF, "cluster type:names", IS_WHOLE, BEHIND_NOTHING},
    {"tooManyGpus", REASON_TOO_MANY_GPUS, "most", IS_WHOLE, BEHIND_NOTHING},
    {"cellsToMake", REASON_CELLS_TO_MAKE, "", IS_WHOLE, BEHIND_NOTHING},

    {"nodeFailed", REASON_NODE_FAILED, "", IS_WHOLE, BEHIND_NOTHING},
    {"endedOften", REASON_ENDED_OFTEN, "", IS_WHOLE, BEHIND_NOTHING},
    {"heldBack", REASON_HELD_BACK, "job seconds", IS_WHOLE, BEHIND_NOTHING},
    {"fixedPortTaken", REASON_PORT_TAKEN, "port node", IS_WHOLE, BEHIND_NOTHING},
    {"freePortsFew", REASON_PORTS_FEW, "node", IS_WHOLE, BEHIND_NOTHING},
    {"portNodes", REASON_PORT_NODES, "tasks port nodes", IS_WHOLE, BEHIND_NOTHING},

    {"wouldPreempt", REASON_WOULD_PREEMPT, "", IS_PREEMPT, BEHIND_NOTHING},
    {"butHeldBack", REASON_BUT_HELD_BACK, "job", IS_BUT, B(IS_PREEMPT)},
    {"butPaused", REASON_BUT_PAUSED, "seconds", IS_BUT, B(IS_PREEMPT)},
    {"butAnother", REASON_BUT_ANOTHER, "", IS_BUT, B(IS_PREEMPT)},
    {"butOwn", REASON_BUT_OWN, "", IS_BUT, B(IS_PREEMPT)},
    {"preempts", REASON_PREEMPTS, "", IS_PREEMPT, BEHIND_NOTHING},
    {"notEnded", REASON_NOT_ENDED, "", IS_HELD_BY, B(IS_PREEMPT)},
    {"heldBy", REASON_HELD_BY, "", IS_HELD_BY, B(IS_PREEMPT) | B(IS_BUT) | BEHIND_ROOM},
    {"holderCount", REASON_HOLDER_COUNT, "job n", IS_HOLDER, B(IS_HELD_BY) | B(IS_NEXT_HOLDER)},
    {"holder", REASON_HOLDER, "job", IS_HOLDER, B(IS_HELD_BY) | B(IS_NEXT_HOLDER)},
    {"next", REASON_NEXT, "", IS_NEXT_HOLDER, B(IS_HOLDER)},
    {"more", REASON_MORE, "n", IS_MORE_HOLDERS, B(IS_HOLDER)},
    {"others", REASON_OTHERS, "", IS_MORE_HOLDERS, B(IS_HOLDER)},

    {"needs", REASON_NEEDS, "", IS_NEEDS, BEHIND_NOTHING},
    {"tasks", REASON_TASKS, "n gpu cpu mib", IS_DEMAND, B(IS_NEEDS) | B(IS_PLUS)},
    {"cells", REASON_CELLS, "n leaves", IS_DEMAND, B(IS_NEEDS) | B(IS_PLUS)},
    {"plus", REASON_PLUS, "", IS_PLUS, B(IS_DEMAND) | B(IS_OF)},
    {"cellsWithin", REASON_CELLS_WITHIN, "within", IS_OF, B(IS_DEMAND)},
    {"tasksOf", REASON_TASKS_OF, "type:names", IS_OF, B(IS_DEMAND)},
    {"tasksOnOne", REASON_TASKS_ON_ONE, "", IS_OF, B(IS_DEMAND) | B(IS_OF)},
    {"tasksAllOnOne", REASON_TASKS_ALL_ONE, "", IS_OF, B(IS_DEMAND) | B(IS_OF)},
    {"leavesWithin", REASON_LEAVES_WITHIN, "within", IS_OF, B(IS_DEMAND) | B(IS_OF)},
    {"leaves", REASON_LEAVES, "", IS_OF, B(IS_DEMAND) | B(IS_OF)},
    {"typeWithin", REASON_TYPE_WITHIN, "type within", IS_OF, B(IS_DEMAND) | B(IS_OF)},
    {"type", REASON_TYPE, "type", IS_OF, B(IS_DEMAND) | B(IS_OF)},
    {"allWithin", REASON_ALL_WITHIN, "within", IS_OF, B(IS_OF)},
    {"ownsNone", REASON_OWNS_NONE, "cluster", IS_FOR, B(IS_OF)},
    {"forBorrowed", REASON_FOR_BORROWED, "cluster priority", IS_FOR, B(IS_OF)},
    {"for", REASON_FOR, "cluster priority", IS_FOR, B(IS_OF)},
    {"noCells", REASON_NO_CELLS, "", IS_WHOLE, BEHIND_NOTHING},

    {"roomOfCluster", REASON_ROOM_CLUSTER, "chain free total", IS_ROOM, B(IS_FOR)},
    {"room", REASON_ROOM_OWN, "chain free total", IS_ROOM, B(IS_FOR)},
    {"roomPinned", REASON_ROOM_PINNED, "cell free total", IS_ROOM, B(IS_FOR)},
    {"roomLargest", REASON_ROOM_LARGEST, "n size", IS_ROOM, B(IS_ROOM)},
    {"roomBad", REASON_ROOM_BAD, "n", IS_ROOM, B(IS_ROOM)},
    {"roomOnNodes", REASON_ROOM_NODES, "nodes :plural gpuFree gpu most cpuFree cpu mibFree mib",
     IS_ROOM, B(IS_DEMAND) | B(IS_OF)},
    {"noType", REASON_NO_TYPE, "", IS_ROOM, B(IS_DEMAND) | B(IS_OF)},
    {"mapping", REASON_MAPPING, "", IS_CAUSE, BEHIND_ROOM},
    {"nodeExcluded", REASON_NODE_EXCLUDED, "node", IS_CAUSE, BEHIND_ROOM},
    {"nodeBad", REASON_NODE_BAD, "node", IS_CAUSE, BEHIND_ROOM},
    {"searchCut", REASON_SEARCH_CUT, "", IS_CAUSE, BEHIND_ROOM},
    {"neverRoom", REASON_NEVER_ROOM, "", IS_NEVER, BEHIND_CAUSES},
    {"neverCell", REASON_NEVER_CELL, "cell", IS_NEVER, BEHIND_CAUSES},
    {"never", REASON_NEVER, "", IS_NEVER, BEHIND_CAUSES},
    {"ways", REASON_WAYS, "n", IS_NEVER, B(IS_WHOLE) | B(IS_FOR) | B(IS_NEVER) | BEHIND_CAUSES},
    {"cpus", REASON_CPUS, "", IS_NEVER, B(IS_WHOLE) | B(IS_FOR) | B(IS_NEVER) | BEHIND_CAUSES},

    {"notUsed", REASON_NOT_USED, "", IS_NOT_USED, BEHIND_ALL | BEHIND_ENGINES},
    {"nodeLost", REASON_LOST, "node", IS_NODE, B(IS_NOT_USED) | B(IS_NEXT_NODE)},
    {"nodeLostWhy", REASON_LOST_WHY, "node why:text", IS_NODE, B(IS_NOT_USED) | B(IS_NEXT_NODE)},
    {"nodeUnhealthy", REASON_UNHEALTHY, "node", IS_NODE, B(IS_NOT_USED) | B(IS_NEXT_NODE)},
    {"nodeUnhealthyWhy", REASON_UNHEALTHY_WHY, "node why:text", IS_NODE,
     B(IS_NOT_USED) | B(IS_NEXT_NODE)},
    {"nodeCordoned", REASON_CORDONED, "node user since:time", IS_NODE,
     B(IS_NOT_USED) | B(IS_NEXT_NODE)},
    {"nodeCordonedWhy", REASON_CORDONED_WHY, "node user since:time why:text", IS_NODE,
     B(IS_NOT_USED) | B(IS_NEXT_NODE)},
    {"nodeBlamed", "%s (cordoned" REASON_BLAME ")", "node since:time failures last:text", IS_NODE,
     B(IS_NOT_USED) | B(IS_NEXT_NODE)},
    {"nodeUnused", REASON_UNUSED, "node why:text", IS_NODE, B(IS_NOT_USED) | B(IS_NEXT_NODE)},
    {"nextNode", REASON_NEXT, "", IS_NEXT_NODE, B(IS_NODE)},
    {"moreNodes", REASON_MORE_NODES, "n", IS_MORE_NODES, B(IS_NODE)},

    {"noEngine", REASON_NO_ENGINE, "", IS_NO_ENGINE, B(AT_START)},
    {"engine", REASON_ENGINE, "engine:text", IS_ENGINE, B(IS_NO_ENGINE) | B(IS_NEXT_ENGINE)},
    {"engineEnd", REASON_ENGINE_END, "", IS_ENGINE_END, BEHIND_ALL},
    {"nextEngine", REASON_NEXT_ENGINE, "", IS_NEXT_ENGINE, B(IS_ENGINE_END)},
    {"otherEngines", REASON_OTHER_ENGINES, "n :plural", IS_OTHER_ENGINES, B(IS_ENGINE_END)},
};

enum { LINES = sizeof lines / sizeof lines[0] };

struct reading {
    struct text text;
    struct arena *arena;
    struct reason_parts *parts; /* so far */
    uint32_t *failed;           /* for each place: the kinds behind which nothing fits from there */
};

static bool parts_read(struct reading *reading, size_t at, enum reason_kind behind);

/* The next of `values`, and what it may be. */
static struct text value_next(struct text *values, enum hole *hole, char conversion)
{
    static const struct {
        const char *name;
        enum hole hole;
    } kinds[] = {{"names", HOLE_NAMES},
                 {"time", HOLE_TIME},
                 {"text", HOLE_TEXT},
                 {"rest", HOLE_REST},
                 {"plural", HOLE_PLURAL}};
    struct text kind = text_cut(values, ' ');
    const struct text name = text_cut(&kind, ':');
    *hole = conversion == 's' ? HOLE_NAME : HOLE_NUMBER;
    for (size_t i = 0; kind.at && i < sizeof kinds / sizeof kinds[0]; i++)
        if (text_is(kind, kinds[i].name))
            *hole = kinds[i].hole;
    return name;
}

static const char *hole_end(const char *format)
{
    assert(*format == '%');
    return format + strcspn(format, "sduf") + 1;
}

static bool is_time(const char *at, size_t length)
{
    static const char SHAPE[] = "0000-00-00 00:00:00 UTC";
    if (length < sizeof SHAPE - 1)
        return false;
    for (size_t i = 0; i < sizeof SHAPE - 1; i++)
        if (SHAPE[i] == '0' ? at[i] < '0' || at[i] > '9' : at[i] != SHAPE[i])
            return false;
    return true;
}

struct value_span { /* of lengths that a value may have */
    size_t shortest, longest;
};

static size_t run(struct text text, const char *set, bool is_of_set)
{
    size_t length = 0;
    while (length < text.length && text.at[length] &&
           (strchr(set, text.at[length]) != NULL) == is_of_set)
        length++;
    return length;
}

/* Nothing when the shortest is above the longest. */
static struct value_span span_of(enum hole hole, struct text rest)
{
    switch (hole) {
    case HOLE_NUMBER: {
        const size_t length = run(rest, "-.0123456789", true);
        return (struct value_span){length ? length : 1, length};
    }
    case HOLE_NAME:
        return (struct value_span){1, run(rest, " ,:;()", false)};
    case HOLE_NAMES:
        return (struct value_span){1, run(rest, " :;()", false)};
    case HOLE_TIME: {
        const size_t length = sizeof "0000-00-00 00:00:00 UTC" - 1;
        return (struct value_span){length, is_time(rest.at, rest.length) ? length : 0};
    }
    case HOLE_TEXT:
        return (struct value_span){0, rest.length};
    case HOLE_REST:
        return (struct value_span){rest.length, rest.length};
    case HOLE_PLURAL:
        return (struct value_span){0, rest.length && *rest.at == 's'};
    }
    assert(false);
    return (struct value_span){1, 0};
}

/* What is left of one line: all that follows is found as well, or nothing is kept. */
static bool line_read(struct reading *reading, const struct reason_line *line, const char *format,
                      struct text values, size_t at)
{
    const struct text text = reading->text;
    for (; *format && *format != '%'; format++, at++)
        if (at == text.length || text.at[at] != *format)
            return false;
    struct reason_parts *parts = reading->parts;
    struct reason_part *part = &parts->items[parts->count];
    if (!*format) {
        assert(!values.length); /* a name for each hole */
        parts->count++;
        if (parts_read(reading, at, line->kind))
            return true;
        parts->count--;
        return false;
    }
    const char *next = hole_end(format);
    enum hole hole;
    const struct text name = value_next(&values, &hole, next[-1]);
    const struct text rest = {text.at + at, text.length - at};
    const struct value_span span = span_of(hole, rest);
    const bool is_value = hole != HOLE_PLURAL;
    assert(!is_value || name.length);
    const unsigned count = part->value_count;
    if (part->first + count == REASON_VALUES_MAX)
        return false;
    for (size_t i = 0; span.shortest + i <= span.longest; i++) {
        /* names are as long as they can be, a text ends where the words go on */
        const size_t length = hole == HOLE_TEXT ? span.shortest + i : span.longest - i;
        if (is_value)
            parts->values[part->first + count] =
                (struct reason_value){.name = arena_copy(reading->arena, name),
                                      .text = {rest.at, length},
                                      .is_number = hole == HOLE_NUMBER};
        part->value_count = count + is_value;
        if (line_read(reading, line, next, values, at + length))
            return true;
    }
    part->value_count = count;
    return false;
}

/* Each place is tried once behind each kind of part. */
static bool parts_read(struct reading *reading, size_t at, enum reason_kind behind)
{
    assert(at <= reading->text.length);
    if (at == reading->text.length)
        return B(behind) & MAY_END;
    if (reading->failed[at] & B(behind) || reading->parts->count == REASON_PARTS_MAX)
        return false;
    struct reason_parts *parts = reading->parts;
    const struct reason_part *last = parts->count ? &parts->items[parts->count - 1] : NULL;
    const unsigned first = last ? last->first + last->value_count : 0;
    for (size_t i = 0; i < LINES; i++) {
        if (!(lines[i].behind & B(behind)))
            continue;
        parts->items[parts->count] = (struct reason_part){.code = lines[i].code, .first = first};
        if (line_read(reading, &lines[i], lines[i].format, text_of(lines[i].values), at))
            return true;
    }
    reading->failed[at] |= B(behind);
    return false;
}

const struct reason_parts *reason_read(struct text text, struct arena *arena)
{
    assert(arena && KINDS <= 32);
    if (!text.length || text.length > REASON_LENGTH_MAX)
        return NULL;
    struct reading reading = {.text = text,
                              .arena = arena,
                              .parts = ARENA_NEW(arena, struct reason_parts),
                              .failed = ARENA_ARRAY(arena, uint32_t, text.length)};
    return parts_read(&reading, 0, AT_START) ? reading.parts : NULL;
}
