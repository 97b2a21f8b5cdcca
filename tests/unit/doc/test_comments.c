/* Comments and the lines that they belong to. */
#include "parse.h"
#include "unit.h"

#include "base/arena.h"
#include "doc/comments.h"

/* Each as LINE:TEXT, behind something as LINE=TEXT; a line of "end" is behind everything. */
static void has_comments(enum doc_format format, const char *source, const char *expected)
{
    cleanup_arena struct arena arena;
    cleanup_problems struct problems problems;
    cleanup_comments struct doc_comments comments;
    cleanup_buf struct buf found = BUF_INIT;
    arena_init(&arena);
    problems_init(&problems, &arena);
    const struct doc *root = doc_parse(text_of(source), format, &arena, &problems);
    assert_non_null(root);
    doc_comments_read(&comments, text_of(source), root, format);
    for (size_t i = 0; i < comments.count; i++) {
        const struct doc_comment *comment = &comments.items[i];
        assert_true(i == 0 || comments.items[i - 1].line <= comment->line);
        assert_false(comment->is_taken);
        if (comment->line == UINT32_MAX)
            buf_string(&found, "end");
        else
            buf_int(&found, comment->line);
        buf_format(&found, "%c%.*s\n", comment->is_behind ? '=' : ':', TEXT_ARG(comment->text));
    }
    assert_string_equal(buf_cstr(&found), expected);
}

static void test_yaml(void **state)
{
    (void)state;
    has_comments(DOC_YAML, "# head\n#   more\n\na: 1 # one\n# of b\nb: 2\n# last\n",
                 "4:head\n4:more\n4=one\n6:of b\nend:last\n");
    has_comments(DOC_YAML, "\xef\xbb\xbf# bom\r\na: b # c\r\n", "2:bom\n2=c\n");
    has_comments(DOC_YAML,
                 "a: 'x # y'\nb: \"x # \\\" # y\" #z\nc: x#y\n\"d # e\": 1 # f\n'g # h' : 2\n",
                 "2=z\n4=f\n");
    has_comments(DOC_YAML, "{a: [x, 'y # z', \"q\" ], # in\n b: 2} # out\n", "1=in\n2=out\n");
    has_comments(DOC_YAML, "a: | # head\n  # text\n  more\n# of b\nb: >-\n  # text\n\n# end\n",
                 "1=head\n5:of b\nend:end\n");
    has_comments(DOC_YAML, "#\n#x", "end:\nend:x\n");
    has_comments(DOC_YAML, "a: plain\n  goes on # here\nb: !!str x # tag\n", "2=here\n3=tag\n");
}

static void test_json(void **state)
{
    (void)state;
    has_comments(DOC_JSON_COMMENTS,
                 "// head\n{\"a\": \"// no /* no\", // yes\n\"b\": 1 /* x */}\n//",
                 "2:head\n2=yes\n3=x\nend:\n");
    has_comments(DOC_JSON_COMMENTS, "/* one\n * two\n *\n */ {\"a\\\"//\": 1}",
                 "4:one\n4:two\n4:\n4:\n");
}

static void test_of_line(void **state)
{
    (void)state;
    struct doc_comment items[] = {{.line = 2}, {.line = 2}, {.line = 5}, {.line = UINT32_MAX}};
    const struct doc_comments comments = {.items = items, .count = 4};
    static const struct {
        uint32_t line;
        size_t first;
    } rows[] = {{1, 0}, {2, 0}, {3, 2}, {5, 2}, {6, 3}, {UINT32_MAX, 3}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(doc_comments_of_line(&comments, rows[i].line), rows[i].first);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_yaml),
    cmocka_unit_test(test_json),
    cmocka_unit_test(test_of_line),
};
UNIT_FILE(tests, NULL, NULL);
