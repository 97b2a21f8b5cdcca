#include "engine/kubernetes/object.h"

#include <assert.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/memory.h"
#include "doc/doc.h"

static bool letter_is(char c)
{
    return c >= 'a' && c <= 'z';
}

bool object_instance_is_good(struct text instance)
{
    if (instance.length == 0 || instance.length > OBJECT_INSTANCE_MAX ||
        !letter_is(instance.at[0]) || instance.at[instance.length - 1] == '-')
        return false;
    for (size_t i = 0; i < instance.length; i++) {
        const char c = instance.at[i];
        if (!letter_is(c) && !(c >= '0' && c <= '9') && c != '-')
            return false;
    }
    return true;
}

void object_name(char name[OBJECT_NAME_SIZE], const char *instance, struct attempt_id attempt)
{
    assert(object_instance_is_good(text_of(instance)) && attempt.v > 0);
    snprintf(name, OBJECT_NAME_SIZE, "%.*s-%llu", OBJECT_INSTANCE_MAX, instance,
             (unsigned long long)attempt.v);
}

struct attempt_id object_attempt(const struct doc *object, const char *instance)
{
    int64_t attempt;
    if (strcmp(object_label(object, OBJECT_LABEL_INSTANCE), instance) != 0 ||
        !text_to_int64(text_of(object_label(object, OBJECT_LABEL_ATTEMPT)), &attempt) ||
        attempt <= 0)
        return (struct attempt_id){0};
    return (struct attempt_id){(uint64_t)attempt};
}

const struct doc *object_at(const struct doc *object, const char *path)
{
    struct text rest = text_of(path);
    while (object && rest.length > 0)
        object = doc_find(object, text_cut(&rest, '.'));
    return object;
}

const char *object_string(const struct doc *object, const char *path)
{
    const struct doc *value = object_at(object, path);
    return value && value->kind == DOC_STRING ? value->as.string.at : "";
}

static const char *named(const struct doc *object, const char *map, const char *name)
{
    const struct doc *value = doc_get(object_at(object, map), name);
    return value && value->kind == DOC_STRING ? value->as.string.at : "";
}

const char *object_label(const struct doc *object, const char *name)
{
    return named(object, "metadata.labels", name);
}

const char *object_note(const struct doc *object, const char *name)
{
    return named(object, "metadata.annotations", name);
}

bool object_is_right_missing(struct text body)
{
    static const char user[] = "User \\\"", cannot[] = "\\\" cannot "; /* in JSON */
    const char *at = body.length > 0 ? memmem(body.at, body.length, user, strlen(user)) : NULL;
    return at && memmem(at, body.length - (size_t)(at - body.at), cannot, strlen(cannot));
}

bool object_is_conflict(struct text body)
{
    cleanup_arena struct arena arena;
    arena_init(&arena);
    cleanup_problems struct problems problems;
    problems_init(&problems, &arena);
    const struct doc *status = doc_parse(body, DOC_JSON, &arena, &problems);
    return status && strcmp(object_string(status, "reason"), "Conflict") == 0;
}

void object_encode(struct buf *out, const char *value)
{
    for (; *value; value++) {
        const unsigned char c = (unsigned char)*value;
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            strchr("-._~", c))
            buf_char(out, (char)c);
        else
            buf_format(out, "%%%02X", c);
    }
}
