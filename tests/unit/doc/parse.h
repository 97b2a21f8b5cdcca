/* parse.h — one parse and its report, for the tests of doc. */
#ifndef TESTS_DOC_PARSE_H
#define TESTS_DOC_PARSE_H
#include "unit.h"

#include "base/arena.h"
#include "base/buf.h"
#include "doc/doc.h"

struct parse {
    struct arena arena;
    struct problems problems;
    const struct doc *doc;
    struct buf report, json;
};

static inline void parse_text(struct parse *parse, enum doc_format format, struct text source)
{
    *parse = (struct parse){0};
    arena_init(&parse->arena);
    problems_init(&parse->problems, &parse->arena);
    parse->doc = doc_parse(source, format, &parse->arena, &parse->problems);
    problems_print(&parse->problems, "f", &parse->report);
    if (parse->doc)
        assert_int_equal(doc_to_json(parse->doc, 1 << 20, &parse->json), 0);
}

static inline void parse_free(struct parse *parse)
{
    problems_release(&parse->problems);
    arena_release(&parse->arena);
    buf_release(&parse->report);
    buf_release(&parse->json);
}

/* The text reads as this JSON and nothing is wrong with it. */
static inline void reads_as(enum doc_format format, const char *source, const char *json)
{
    struct parse p;
    parse_text(&p, format, text_of(source));
    assert_string_equal(buf_cstr(&p.report), "");
    assert_non_null(p.doc);
    assert_string_equal(buf_cstr(&p.json), json);
    parse_free(&p);
}

/* The text gives this report. */
static inline void is_wrong(enum doc_format format, const char *source, const char *report)
{
    struct parse p;
    parse_text(&p, format, text_of(source));
    assert_string_equal(buf_cstr(&p.report), report);
    parse_free(&p);
}

#endif
