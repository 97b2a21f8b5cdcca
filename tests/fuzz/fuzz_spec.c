/* Any bytes as a job file: no crash, no leak; what is accepted survives encoding, its masked text
 * says the same but for the secrets, its templates render, and what is early can be converted to a
 * file of protocol 2 with the same roles. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "doc/doc.h"
#include "spec/convert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void accepted_check(const struct spec_parsed *parsed)
{
    struct buf bytes = BUF_INIT, again = BUF_INIT, rendered = BUF_INIT;
    struct err err;
    spec_encode(parsed->spec, &bytes);
    struct spec *copy = spec_decode(buf_as_text(&bytes), &err);
    assert(copy);
    spec_encode(copy, &again);
    assert(text_equal(buf_as_text(&bytes), buf_as_text(&again)));
    assert(spec_task_count(copy) <= SPEC_TASKS_MAX);
    for (size_t i = 0; i < copy->role_count; i++)
        spec_render_secrets(text_of(copy->roles[i].command), parsed->secrets, parsed->secret_count,
                            &rendered);
    for (size_t i = 0; i < copy->plugin_count; i++)
        spec_render_secrets_json(text_of(copy->plugins[i].parameters_json), parsed->secrets,
                                 parsed->secret_count, &rendered);
    spec_free(copy);
    buf_release(&bytes);
    buf_release(&again);
    buf_release(&rendered);
}

static const struct doc *any_parse(struct text source, struct arena *arena)
{
    struct problems problems;
    problems_init(&problems, arena);
    const struct doc *doc = doc_parse(source, DOC_JSON_COMMENTS, arena, &problems);
    if (!doc)
        doc = doc_parse(source, DOC_YAML, arena, &problems);
    problems_release(&problems);
    return doc;
}

/* The masked text is a document that says the same, but for its secrets. */
static void masked_check(struct text source, struct text masked, struct arena *arena)
{
    const struct doc *before = any_parse(source, arena), *after = any_parse(masked, arena);
    assert(before && after && before->kind == DOC_MAP && after->kind == DOC_MAP);
    assert(before->as.map.count == after->as.map.count);
    for (size_t i = 0; i < before->as.map.count; i++) {
        const struct doc_entry *entry = &before->as.map.entries[i];
        const struct doc *value = doc_find(after, entry->key);
        struct buf one = BUF_INIT, other = BUF_INIT;
        assert(value);
        if (text_is(entry->key, "secrets") && entry->value->kind != DOC_NULL) {
            assert(value->kind == DOC_STRING && text_is(value->as.string, "******"));
            continue;
        }
        int result = doc_to_json(entry->value, 1 << 22, &one);
        assert(doc_to_json(value, 1 << 22, &other) == result);
        assert(text_equal(buf_as_text(&one), buf_as_text(&other)));
        buf_release(&one);
        buf_release(&other);
    }
}

static void converted_check(struct text source, const struct spec *spec, struct arena *arena)
{
    struct problems problems, again;
    struct buf out = BUF_INIT;
    struct spec_converted converted;
    struct spec_parsed parsed = {0};
    problems_init(&problems, arena);
    problems_init(&again, arena);
    int code = spec_convert(source, arena, &out, &problems, &converted);
    assert(code == 0 && converted.format == spec->format);
    code = spec_parse(buf_as_text(&out), arena, &parsed, &again);
    /* what has grown beyond the limits of a file, or of a command, is refused like any other */
    assert(code == 0 || out.length > SPEC_COMMAND_MAX);
    for (size_t i = 0; code == 0 && i < spec->role_count; i++) {
        const struct spec_role *one = &spec->roles[i], *other = &parsed.spec->roles[i];
        assert(one->instances == other->instances && one->cpu == other->cpu);
        assert(one->memory_mib == other->memory_mib && one->gpu == other->gpu);
        assert(one->port_count == other->port_count);
    }
    spec_free(parsed.spec);
    buf_release(&out);
    problems_release(&problems);
    problems_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena scratch;
    struct problems problems;
    struct buf out = BUF_INIT, masked = BUF_INIT;
    struct spec_parsed parsed = {.masked = &masked};
    struct text source = {(const char *)data, size};
    arena_init(&scratch);
    problems_init(&problems, &scratch);
    int result = spec_parse(source, &scratch, &parsed, &problems);
    assert((result == 0) == (parsed.spec != NULL));
    assert((result == 0) == (problems.error_count == 0));
    problems_print(&problems, "fuzz", &out);
    if (parsed.spec) {
        accepted_check(&parsed);
        masked_check(source, buf_as_text(&masked), &scratch);
        converted_check(source, parsed.spec, &scratch);
    }
    struct err err;
    spec_free(spec_decode(source, &err));
    spec_free(parsed.spec);
    buf_release(&out);
    buf_release(&masked);
    problems_release(&problems);
    arena_release(&scratch);
    return 0;
}
