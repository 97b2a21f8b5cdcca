#include "unit.h"

#include "doc/doc.h"
#include "scratch.h"

struct arena arena;

int setup(void **state)
{
    (void)state;
    arena_init(&arena);
    return 0;
}

int teardown(void **state)
{
    (void)state;
    arena_release(&arena);
    return 0;
}

const struct doc *json_of(struct text text)
{
    cleanup_problems struct problems problems;
    problems_init(&problems, &arena);
    const struct doc *doc = doc_parse(text, DOC_JSON, &arena, &problems);
    assert_non_null(doc);
    assert_int_equal(problems.error_count, 0);
    return doc;
}

const struct doc *json(const char *text)
{
    return json_of(text_of(text));
}
