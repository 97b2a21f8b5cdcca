/* What is written is read back as it was. */
#include "parse.h"
#include "unit.h"

#include "base/arena.h"
#include "base/buf.h"
#include "doc/yaml_writer.h"

static void reads_back(struct text text)
{
    cleanup_arena struct arena arena;
    cleanup_problems struct problems problems;
    cleanup_buf struct buf out = BUF_INIT;
    struct yaml_writer yaml = {.out = &out};
    arena_init(&arena);
    problems_init(&problems, &arena);
    yaml_key(&yaml, text, NULL);
    yaml_open(&yaml);
    yaml_item(&yaml, NULL);
    yaml_text(&yaml, text);
    yaml_close(&yaml);
    const struct doc *root = doc_parse(buf_as_text(&out), DOC_YAML, &arena, &problems);
    if (!root || root->kind != DOC_MAP || root->as.map.count != 1)
        fail_msg("not a map:\n%s", buf_cstr(&out));
    const struct doc_entry *entry = &root->as.map.entries[0];
    assert_true(text_equal(entry->key, text));
    assert_int_equal(doc_count(entry->value), 1);
    const struct doc *item = entry->value->as.list.items[0];
    if (item->kind != DOC_STRING || !text_equal(item->as.string, text))
        fail_msg("not the same:\n%s", buf_cstr(&out));
}

static void test_texts(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "word",
        "two words",
        "x: y",
        "x:",
        "x ",
        " x",
        "true",
        "null",
        "~",
        "1e3",
        "0x10",
        "no",
        "Off",
        "y",
        "on time",
        "- x",
        "a # b",
        "a#b",
        "'",
        "\"",
        "\\",
        "line\nline",
        "line\n",
        "\nline",
        " a\nb",
        "a\n\n b\n\tc",
        "a\n  ",
        "a\r\nb",
        "tab\there",
        "\tx",
        "<% $x %>",
        "*x",
        "&x",
        "!x",
        "{",
        "[a]",
        "%x",
        "@x",
        "`x`",
        "---",
        "...",
        "\xc3\xbc",
        "\xc3\xbc\nx",
        "\xc2\x85",
        "a\xc2\x85\nb",
        "\xe2\x80\xa8",
        "\xe2\x80\xa9\nx",
        "\xef\xbb\xbf",
        "\xef\xbf\xbe",
        "\x7f",
        "\x01",
        "\xe2\x82\xac",
        "\xe3\x80\x82",
        "\xef\xbc\x81",
        "\xf0\x9f\x90\x9d",
        "https://x/y",
        "a=b,c+d@e",
        "_x",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        reads_back(text_of(texts[i]));
    reads_back(TEXT("a\0b"));
    char longest[2000];
    memset(longest, 'x', sizeof longest);
    reads_back((struct text){longest, sizeof longest});
    reads_back((struct text){longest, 200});
    reads_back((struct text){longest, 201});
}

static void tree_is(const char *source, const char *expected)
{
    cleanup_arena struct arena arena;
    cleanup_problems struct problems problems;
    cleanup_comments struct doc_comments comments;
    cleanup_buf struct buf out = BUF_INIT;
    arena_init(&arena);
    problems_init(&problems, &arena);
    const struct doc *root = doc_parse(text_of(source), DOC_YAML, &arena, &problems);
    assert_non_null(root);
    doc_comments_read(&comments, text_of(source), root, DOC_YAML);
    struct yaml_writer yaml = {.out = &out, .comments = &comments};
    yaml_key(&yaml, TEXT("x"), NULL);
    yaml_doc(&yaml, root);
    yaml_comments_left(&yaml, 0, UINT32_MAX);
    assert_string_equal(buf_cstr(&out), expected);
}

static void test_trees(void **state)
{
    (void)state;
    tree_is("[]", "x: []\n");
    tree_is("{}", "x: {}\n");
    tree_is("null", "x: null\n");
    tree_is("0.0010", "x: 0.0010\n");
    tree_is("true", "x: true\n");
    tree_is("[1, [2], {}, {a: false, b: {c: d}}]",
            "x:\n  - 1\n  -\n    - 2\n  - {}\n  - a: false\n    b:\n      c: d\n");
}

static void test_comments(void **state)
{
    (void)state;
    tree_is(
        "# of a\na: 1 # one\n# of b\nb: # two\n  # in b\n  - x # three\n  # none\n",
        "x:\n  # of a\n  a: 1 # one\n  # of b\n  b: # two\n    # in b\n    - x # three\n# none\n");
    tree_is("- # first\n  a: | # head\n    l\n    m\n",
            "x:\n  - a: | # head\n      l\n      m\n# first\n");
    struct doc_comment items[] = {{.text = TEXT("bad \xff\x01"), .line = 1}};
    struct doc_comments comments = {.items = items, .count = 1};
    cleanup_buf struct buf out = BUF_INIT;
    struct yaml_writer yaml = {.out = &out, .comments = &comments};
    yaml_comments_left(&yaml, 2, 9);
    assert_int_equal(out.length, 0);
    yaml_comments_left(&yaml, 1, 1);
    yaml_comments_left(&yaml, 1, 1);
    yaml_comment(&yaml, TEXT(""));
    assert_string_equal(buf_cstr(&out), "# bad \xef\xbf\xbd\xef\xbf\xbd\n#\n");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_texts),
    cmocka_unit_test(test_trees),
    cmocka_unit_test(test_comments),
};
UNIT_FILE(tests, NULL, NULL);
