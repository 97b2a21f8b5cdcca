/* parse.h — one parse and everything that it gives, for the tests of spec. */
#ifndef TESTS_SPEC_PARSE_H
#define TESTS_SPEC_PARSE_H
#include "unit.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "spec/spec.h"

struct parse {
    struct arena scratch;
    struct problems problems;
    struct spec_parsed parsed;
    struct buf masked, report;
    const struct spec *spec;
    int result;
};

static inline void parse_kept(struct parse *parse, struct text source, const struct spec_kept *kept)
{
    *parse = (struct parse){.parsed.kept = kept};
    arena_init(&parse->scratch);
    problems_init(&parse->problems, &parse->scratch);
    parse->parsed.masked = &parse->masked;
    parse->result = spec_parse(source, &parse->scratch, &parse->parsed, &parse->problems);
    parse->spec = parse->parsed.spec;
    problems_print(&parse->problems, "job", &parse->report);
}

static inline void parse_text(struct parse *parse, struct text source)
{
    parse_kept(parse, source, NULL);
}

static inline void parse(struct parse *parse, const char *source)
{
    parse_text(parse, text_of(source));
}

static inline void parse_free(struct parse *parse)
{
    spec_free(parse->parsed.spec);
    problems_release(&parse->problems);
    buf_release(&parse->masked);
    buf_release(&parse->report);
    arena_release(&parse->scratch);
}

/* The file is read and nothing is said. */
static inline void is_right(const char *source)
{
    struct parse p;
    parse(&p, source);
    assert_string_equal(buf_cstr(&p.report), "");
    assert_non_null(p.spec);
    parse_free(&p);
}

/* The file is refused and `message` is in the report. */
static inline void is_wrong(const char *source, const char *message)
{
    struct parse p;
    parse(&p, source);
    if (!strstr(buf_cstr(&p.report), message))
        fail_msg("%s\nlacks: %s", buf_cstr(&p.report), message);
    assert_null(p.spec);
    parse_free(&p);
}

/* The text is read, or refused with `message`; then it is cleared. */
static inline void fits(struct buf *text)
{
    struct parse p;
    parse_text(&p, buf_as_text(text));
    if (!p.spec)
        fail_msg("%.500s", buf_cstr(&p.report));
    parse_free(&p);
    buf_clear(text);
}

static inline void refused(struct buf *text, const char *message)
{
    is_wrong(buf_cstr(text), message);
    buf_clear(text);
}

static inline void fill(struct buf *text, char c, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buf_char(text, c);
}

#define HEAD                                                                                       \
    "protocolVersion: 2\n"                                                                         \
    "name: hello\n"                                                                                \
    "type: job\n"                                                                                  \
    "prerequisites:\n"                                                                             \
    "  - {type: dockerimage, name: debian, uri: debian:12}\n"
#define RESOURCES "    resourcePerInstance: {cpu: 1, memoryMB: 128, gpu: 0}\n"
#define WORKER                                                                                     \
    "  worker:\n"                                                                                  \
    "    dockerImage: debian\n" RESOURCES "    commands:\n"                                        \
    "      - echo hello\n"
#define HELLO HEAD "taskRoles:\n" WORKER

#endif
