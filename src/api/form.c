#include "api/form.h"
#include "api/http.h"
#include "base/arena.h"
#include "base/err.h"
#include "doc/doc.h"
#include <assert.h>
#include <stdlib.h>

/* A key with its values: a leaf has one text, anything else has children. */
struct form_key {
    struct text key;
    struct text value; /* at == NULL: not a leaf */
    struct form_key *first, *last, *next;
    size_t count; /* of children */
};

bool form_is_type(struct text content_type)
{
    return text_starts(content_type, TEXT("application/x-www-form-urlencoded"));
}

bool form_is_text(struct text body)
{
    if (!body.length || !memchr(body.at, '=', body.length))
        return false;
    for (size_t i = 0; i < body.length; i++)
        if ((unsigned char)body.at[i] <= ' ' || strchr("{}:\"", body.at[i]))
            return false;
    return true;
}

static struct form_key *child_add(struct form_key *field, struct text key, struct arena *arena)
{
    struct form_key *child = ARENA_NEW(arena, struct form_key);
    child->key = (struct text){arena_copy(arena, key), key.length};
    if (field->last)
        field->last->next = child;
    else
        field->first = child;
    field->last = child;
    field->count++;
    return child;
}

static struct form_key *child_of(struct form_key *field, struct text key, struct arena *arena)
{
    for (struct form_key *child = field->first; child && key.length; child = child->next)
        if (text_equal(child->key, key))
            return child;
    return child_add(field, key, arena); /* "[]": always one more */
}

/* "a[b][0]" into its parts; a key with other brackets is one part as it stands. Returns how many,
 * 0: too many. */
static size_t key_cut(struct text key, struct text parts[FORM_DEPTH_MAX + 1])
{
    const char *bracket = memchr(key.at, '[', key.length);
    size_t count = 1;
    parts[0] = key;
    if (!bracket || bracket == key.at || key.at[key.length - 1] != ']')
        return 1;
    struct text rest = {bracket, (size_t)(key.at + key.length - bracket)};
    parts[0].length = (size_t)(bracket - key.at);
    while (rest.length) {
        const char *end = memchr(rest.at, ']', rest.length);
        if (rest.at[0] != '[' || !end) {
            parts[0] = key;
            return 1;
        }
        if (count > FORM_DEPTH_MAX)
            return 0;
        parts[count++] = (struct text){rest.at + 1, (size_t)(end - rest.at - 1)};
        rest = (struct text){end + 1, (size_t)(rest.at + rest.length - end - 1)};
    }
    return count;
}

static int pair_add(struct form_key *root, const struct http_pair *pair, struct arena *arena,
                    struct err *err)
{
    struct text parts[FORM_DEPTH_MAX + 1];
    size_t count = key_cut(pair->name, parts);
    struct form_key *at = root;
    if (!count)
        return err_fail(err, ERR_TOO_BIG, "body", "a key has more than %d brackets",
                        FORM_DEPTH_MAX);
    for (size_t i = 0; i < count; i++) {
        if (at->value.at)
            return err_fail(err, ERR_INVALID, "body", "%.*s is a value and a map",
                            (int)(pair->name.length > 100 ? 100 : pair->name.length),
                            pair->name.at);
        at = child_of(at, parts[i], arena);
    }
    if (at->value.at) { /* a key that comes again makes a list */
        struct text before = at->value;
        at->value = (struct text){NULL, 0};
        child_add(at, TEXT(""), arena)->value = before;
    } else if (!at->first) {
        at->value = pair->value;
        return 0;
    }
    child_add(at, TEXT(""), arena)->value = pair->value;
    return 0;
}

static bool key_number(struct text key, int64_t *number)
{
    *number = INT64_MAX; /* "[]" goes behind those with a number */
    return !key.length || (text_to_int64(key, number) && *number >= 0);
}

static bool is_list(const struct form_key *field)
{
    int64_t ignored;
    for (const struct form_key *child = field->first; child; child = child->next)
        if (!key_number(child->key, &ignored))
            return false;
    return field->first != NULL;
}

struct place_of {
    int64_t number;
    size_t order;
    const struct doc *doc;
};

static int place_compare(const void *a, const void *b)
{
    const struct place_of *left = a, *right = b;
    if (left->number != right->number)
        return left->number < right->number ? -1 : 1;
    return left->order < right->order ? -1 : left->order > right->order;
}

static struct doc *tree_of(const struct form_key *field, bool is_root, struct arena *arena)
{
    struct doc *doc = ARENA_NEW(arena, struct doc);
    struct place_of *places = ARENA_ARRAY(arena, struct place_of, field->count + 1);
    size_t i = 0;
    if (field->value.at) {
        doc->kind = DOC_STRING;
        doc->as.string = (struct text){arena_copy(arena, field->value), field->value.length};
        doc->source = doc->as.string;
        return doc;
    }
    for (const struct form_key *child = field->first; child; child = child->next, i++) {
        places[i].order = i;
        places[i].doc = tree_of(child, false, arena);
        key_number(child->key, &places[i].number);
    }
    assert(i == field->count);
    if (!is_root && is_list(field)) {
        const struct doc **items = ARENA_ARRAY(arena, const struct doc *, field->count);
        qsort(places, field->count, sizeof *places, place_compare);
        for (i = 0; i < field->count; i++)
            items[i] = places[i].doc;
        doc->kind = DOC_LIST;
        doc->as.list.items = items;
        doc->as.list.count = field->count;
        return doc;
    }
    doc->kind = DOC_MAP;
    doc->as.map.entries = ARENA_ARRAY(arena, struct doc_entry, field->count + 1);
    doc->as.map.count = field->count;
    i = 0;
    for (const struct form_key *child = field->first; child; child = child->next, i++)
        doc->as.map.entries[i] = (struct doc_entry){.key = child->key, .value = places[i].doc};
    return doc;
}

int form_parse(struct text body, struct arena *arena, const struct doc **out, struct err *err)
{
    struct http_pair *pairs = ARENA_ARRAY(arena, struct http_pair, FORM_FIELDS_MAX);
    struct form_key root = {0};
    size_t count;
    int code = http_form_parse(body, arena, pairs, FORM_FIELDS_MAX, &count, err);
    for (size_t i = 0; !code && i < count; i++)
        code = pair_add(&root, &pairs[i], arena, err);
    if (!code)
        *out = tree_of(&root, true, arena);
    return code;
}
