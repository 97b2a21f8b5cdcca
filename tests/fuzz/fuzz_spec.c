/* Any bytes as a job file: no crash, no leak; what is accepted survives encoding, its masked text
 * holds no secret value, and its templates render. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "spec/spec.h"

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
    if (parsed.spec)
        accepted_check(&parsed);
    struct err err;
    spec_free(spec_decode(source, &err));
    spec_free(parsed.spec);
    buf_release(&out);
    buf_release(&masked);
    problems_release(&problems);
    arena_release(&scratch);
    return 0;
}
