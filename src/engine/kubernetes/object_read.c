#include "engine/kubernetes/object_read.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/memory.h"
#include "doc/doc.h"
#include "engine/kubernetes/json_cut.h"
#include "engine/kubernetes/object.h"

/* What is taken of a map: a string, or these parts of a map. The last has no name. */
struct part {
    const char *name;
    const struct part *parts;
};

static const struct part labels[] = {
    {OBJECT_LABEL_INSTANCE, NULL}, {OBJECT_LABEL_ATTEMPT, NULL}, {0}};
static const struct part notes[] = {{OBJECT_NOTE_JOB, NULL}, {OBJECT_NOTE_DEVICES, NULL}, {0}};
static const struct part metadata[] = {{"name", NULL},
                                       {"uid", NULL},
                                       {"resourceVersion", NULL},
                                       {"deletionTimestamp", NULL},
                                       {"labels", labels},
                                       {"annotations", notes},
                                       {0}};
static const struct part spec[] = {{"nodeName", NULL}, {"driver", NULL}, {0}};
static const struct part object[] = {{"metadata", metadata}, {"spec", spec}, {0}};
static const struct part event[] = {{"type", NULL}, {"object", object}, {0}};

static const struct doc *json_read(struct text text, struct arena *arena, const char **trouble)
{
    cleanup_problems struct problems problems;
    problems_init(&problems, arena);
    const struct doc *doc = doc_parse(text, DOC_JSON, arena, &problems);
    *trouble = NULL;
    if (doc && problems.error_count == 0)
        return doc;
    *trouble = problems.count > 0 ? problems.items[0].text : "it is no JSON";
    return NULL;
}

/* The part of this key, as it is written; the first of them, where one comes again. */
static const struct part *part_of(const struct part *parts, struct text key, unsigned *taken)
{
    for (size_t i = 0; parts[i].name; i++) {
        const size_t length = strlen(parts[i].name);
        assert(i < 8 * sizeof *taken);
        if (key.length != length + 2 || memcmp(key.at + 1, parts[i].name, length) != 0)
            continue;
        const bool is_first = !(*taken & 1U << i);
        *taken |= 1U << i;
        return is_first ? &parts[i] : NULL;
    }
    return NULL;
}

/* `map` may be cut off: then so is its last value. */
static void parts_take(struct text map, const struct part *parts, struct buf *out)
{
    struct text key;
    unsigned taken = 0;
    bool is_whole = json_cut_char(&map, '{'), is_first = true;
    buf_char(out, '{');
    while (is_whole && json_cut_value(&map, &key) && json_cut_char(&map, ':')) {
        struct text value = {0};
        is_whole = json_cut_value(&map, &value);
        json_cut_char(&map, ',');
        const struct part *part = value.length > 0 ? part_of(parts, key, &taken) : NULL;
        const bool is_wanted =
            part && (part->parts ? value.at[0] == '{' : is_whole && value.at[0] == '"');
        if (!is_wanted)
            continue;
        buf_string(out, is_first ? "" : ",");
        buf_text(out, key);
        buf_char(out, ':');
        if (part->parts)
            parts_take(value, part->parts, out);
        else
            buf_text(out, value);
        is_first = false;
    }
    buf_char(out, '}');
}

static const struct doc *head_read(struct text text, const struct part *parts, const char *name,
                                   const char *uid, struct arena *arena)
{
    cleanup_buf struct buf head = BUF_INIT;
    const char *trouble;
    parts_take(text, parts, &head);
    const struct doc *doc = json_read(buf_as_text(&head), arena, &trouble);
    return object_string(doc, name)[0] && object_string(doc, uid)[0] ? doc : NULL;
}

const struct doc *object_read(struct text text, struct arena *arena, const char **trouble)
{
    const struct doc *doc = json_read(text, arena, trouble);
    return doc ? doc : head_read(text, object, "metadata.name", "metadata.uid", arena);
}

const struct doc *object_event_read(struct text line, struct arena *arena, const char **trouble)
{
    const struct doc *doc = json_read(line, arena, trouble);
    return doc ? doc : head_read(line, event, "object.metadata.name", "object.metadata.uid", arena);
}
