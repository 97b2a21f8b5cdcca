/* Templates of protocol 2: `<% $parameters.a.b[0] %>`. What is no reference stays as it is. */
#include <stdio.h>

#include "base/buf.h"
#include "base/json_writer.h"
#include "doc/shape.h"
#include "spec/read.h"

struct template_reference {
    size_t begin, end;  /* of the whole `<% … %>` */
    struct text root;   /* "parameters", "secrets", … without `$` */
    struct text inside; /* what follows the root: ".a.b[0]", may be empty */
};

static bool is_name_end(char c)
{
    return c == '.' || c == '[';
}

static void reference_fill(struct template_reference *found, struct text inner)
{
    size_t length = 1;
    while (length < inner.length && !is_name_end(inner.at[length]))
        length++;
    found->root = (struct text){inner.at + 1, length - 1};
    found->inside = (struct text){inner.at + length, inner.length - length};
}

/* The next `<% $… %>` at or behind `from`. Of several `<%` before a `%>` the last one opens. */
static bool reference_next(struct text source, size_t from, struct template_reference *found)
{
    while (from < source.length) {
        struct text rest = {source.at + from, source.length - from};
        size_t close = text_find(rest, TEXT("%>"));
        if (close == SIZE_MAX)
            return false;
        const char *open = close >= 2 ? rest.at + close - 2 : NULL;
        while (open && open >= rest.at && (open[0] != '<' || open[1] != '%'))
            open--;
        if (open && open >= rest.at) {
            struct text inner =
                text_trim((struct text){open + 2, (size_t)(rest.at + close - open) - 2});
            if (inner.length > 1 && inner.at[0] == '$') {
                reference_fill(found, inner);
                found->begin = (size_t)(open - source.at);
                found->end = from + close + 2;
                return true;
            }
        }
        from += close + 2;
    }
    return false;
}

/* Cut the first step off `.a.b[0]`: `a`, then `b`, then `0`. False at the end or when it is none.
 */
static bool step_next(struct text *rest, struct text *step)
{
    if (rest->length < 2)
        return false;
    bool is_index = rest->at[0] == '[';
    size_t length = 1;
    while (length < rest->length &&
           (is_index ? rest->at[length] != ']' : !is_name_end(rest->at[length])))
        length++;
    if (is_index && length == rest->length)
        return false;
    *step = (struct text){rest->at + 1, length - 1};
    if (is_index)
        length++;
    rest->at += length;
    rest->length -= length;
    return true;
}

static const struct doc *step_take(const struct doc *doc, struct text step)
{
    int64_t index;
    if (doc->kind == DOC_LIST && text_to_int64(step, &index) && index >= 0 &&
        (uint64_t)index < doc->as.list.count)
        return doc->as.list.items[index];
    return doc_find(doc, step);
}

static void near_of_map(struct near *near, const struct doc *doc, struct text step)
{
    enum { ENOUGH = 500 };
    for (size_t i = 0; doc->kind == DOC_MAP && i < doc->as.map.count && i < ENOUGH; i++)
        near_offer(near, step, doc->as.map.entries[i].key);
}

static const struct doc *find(const struct doc *doc, struct text inside, struct near *near)
{
    struct text step;
    while (doc && inside.length > 0) {
        if (!step_next(&inside, &step))
            return NULL;
        const struct doc *next = step_take(doc, step);
        if (!next)
            near_of_map(near, doc, step);
        doc = next;
    }
    return doc;
}

static void value_add(const struct template_scope *scope, struct text value, struct buf *out)
{
    if (!scope->is_json) {
        buf_text(out, value);
        return;
    }
    struct json_writer json;
    cleanup_buf struct buf quoted = BUF_INIT;
    json_init(&json, &quoted);
    json_text(&json, value);
    buf_add(out, quoted.at + 1, quoted.length - 2);
}

static bool is_plain_value(const struct doc *doc)
{
    return doc->kind != DOC_LIST && doc->kind != DOC_MAP;
}

/* Scalars as they were written; a list is joined by commas, as JavaScript did. */
static bool doc_add(const struct template_scope *scope, const struct doc *doc, size_t length_max,
                    struct buf *out)
{
    if (doc->kind == DOC_BOOL) {
        buf_string(out, doc->as.boolean ? "true" : "false");
    } else if (doc->kind == DOC_LIST) {
        for (size_t i = 0; i < doc->as.list.count; i++)
            if (!is_plain_value(doc->as.list.items[i]))
                return false;
        for (size_t i = 0; i < doc->as.list.count && out->length <= length_max; i++) {
            if (i > 0)
                buf_char(out, ',');
            doc_add(scope, doc->as.list.items[i], length_max, out);
        }
    } else if (doc->kind == DOC_MAP) {
        return false;
    } else if (doc->kind != DOC_NULL) {
        value_add(scope, doc->source, out);
    }
    return true;
}

/* `secrets` entries have dotted names: `a[0].b` is called `a.0.b`. */
static bool is_secret_named(struct text inside, const char *name)
{
    struct text step, rest = text_of(name);
    while (step_next(&inside, &step)) {
        if (!text_starts(rest, step))
            return false;
        rest.at += step.length;
        rest.length -= step.length;
        if (rest.length > 0 && inside.length > 0) {
            if (rest.at[0] != '.')
                return false;
            rest.at++;
            rest.length--;
        }
    }
    return inside.length == 0 && rest.length == 0;
}

static const char *secret_find(const struct spec_pair *secrets, size_t count, struct text inside)
{
    for (size_t i = 0; i < count; i++)
        if (is_secret_named(inside, secrets[i].name))
            return secrets[i].value;
    return NULL;
}

/* As much of a reference as is shown. */
static size_t inside_length(const struct template_reference *reference)
{
    enum { SHOWN = 64 };
    return reference->inside.length < SHOWN ? reference->inside.length : SHOWN;
}

static void unresolved(const struct template_scope *scope,
                       const struct template_reference *reference, const struct near *near,
                       const char *why)
{
    struct problem *problem =
        problem_warn(scope->problems, scope->place, scope->path, "<%% $%.*s%.*s %%> %s",
                     (int)(reference->root.length < 64 ? reference->root.length : 64),
                     reference->root.at, (int)inside_length(reference), reference->inside.at, why);
    near_hint(near, scope->problems, problem);
}

static void secret_check(struct template_scope *scope, const struct template_reference *reference)
{
    struct near near = {0};
    const char *secret = secret_find(scope->secrets, scope->secret_count, reference->inside);
    if (secret) {
        scope->secret_bytes += strlen(secret);
        return;
    }
    struct text inside = reference->inside, step = {0};
    if (step_next(&inside, &step) && inside.length == 0)
        for (size_t i = 0; i < scope->secret_count; i++)
            near_offer(&near, step, text_of(scope->secrets[i].name));
    if (!scope->secrets_of) {
        unresolved(scope, reference, &near, "names no secret, it stays as it is");
        return;
    }
    const size_t length = inside_length(reference);
    struct problem *problem =
        problem_add(scope->problems, scope->place, scope->path,
                    "<%% $secrets%.*s %%>: job %s, whose secrets are taken, has none of this name",
                    (int)length, reference->inside.at, scope->secrets_of);
    near_hint(&near, scope->problems, problem);
}

void template_secrets_check(struct template_scope *scope, struct text source)
{
    struct template_reference reference;
    for (size_t from = 0; reference_next(source, from, &reference); from = reference.end)
        if (text_is(reference.root, "secrets"))
            secret_check(scope, &reference);
}

/* False when the reference stays as it is. */
static bool reference_render(struct template_scope *scope,
                             const struct template_reference *reference, size_t length_max,
                             struct buf *out)
{
    static const char *const roots[] = {"parameters", "secrets", "script", "output", "data", NULL};
    struct near near = {0};
    const struct doc *base = NULL;
    if (text_is(reference->root, "secrets")) {
        secret_check(scope, reference);
        return false;
    }
    bool is_known = true;
    if (text_is(reference->root, "parameters"))
        base = scope->parameters;
    else if (text_is(reference->root, "script"))
        base = scope->script;
    else if (text_is(reference->root, "output"))
        base = scope->output;
    else if (text_is(reference->root, "data"))
        base = scope->data;
    else
        is_known = false;
    for (const char *const *root = roots; !is_known && *root; root++)
        near_offer(&near, reference->root, text_of(*root));
    const struct doc *value = find(base, reference->inside, &near);
    if (!value)
        unresolved(scope, reference, &near, "names nothing, it stays as it is");
    else if (!doc_add(scope, value, length_max, out))
        unresolved(scope, reference, &near, "is not a single value, it stays as it is");
    else
        return true;
    return false;
}

int template_render(struct template_scope *scope, struct text source, size_t length_max,
                    struct buf *out)
{
    struct template_reference reference;
    size_t from = 0;
    while (out->length + scope->secret_bytes <= length_max &&
           reference_next(source, from, &reference)) {
        buf_add(out, source.at + from, reference.begin - from);
        if (!reference_render(scope, &reference, length_max, out))
            buf_add(out, source.at + reference.begin, reference.end - reference.begin);
        from = reference.end;
    }
    if (out->length <= length_max)
        buf_add(out, source.at + from, source.length - from);
    return out->length + scope->secret_bytes > length_max ? ERR_TOO_BIG : 0;
}

static void secrets_render(struct text value, const struct spec_pair *secrets, size_t count,
                           bool is_json, struct buf *out)
{
    const struct template_scope scope = {.is_json = is_json};
    struct template_reference reference;
    size_t from = 0;
    while (reference_next(value, from, &reference)) {
        const char *secret = text_is(reference.root, "secrets")
                                 ? secret_find(secrets, count, reference.inside)
                                 : NULL;
        buf_add(out, value.at + from, reference.begin - from);
        if (secret)
            value_add(&scope, text_of(secret), out);
        else
            buf_add(out, value.at + reference.begin, reference.end - reference.begin);
        from = reference.end;
    }
    buf_add(out, value.at + from, value.length - from);
}

void spec_render_secrets(struct text value, const struct spec_pair *secrets, size_t count,
                         struct buf *out)
{
    secrets_render(value, secrets, count, false, out);
}

void spec_render_secrets_json(struct text json, const struct spec_pair *secrets, size_t count,
                              struct buf *out)
{
    secrets_render(json, secrets, count, true, out);
}
