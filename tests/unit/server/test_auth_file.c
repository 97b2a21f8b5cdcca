/* The authFile of a v1 job: read, refused, and fitted to its registry only. */
#include "space.h"
#include "unit.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "server/auth_file.h"

static int parse(const char *text, struct auth_file *file, struct err *err)
{
    return auth_file_parse(text_of(text), &arena, file, err);
}

static void auth_files_are_read(void **state)
{
    static const struct {
        const char *text, *registry, *user, *password;
    } cases[] = {
        {"r.example:5000\nbob\nse cret", "r.example:5000", "bob", "se cret"},
        {"r.example\r\nbob\r\nsecret \r\n\r\n\n", "r.example", "bob", "secret "},
        {"\xef\xbb\xbfhttps://index.docker.io/v1/\nbob\np\n", "docker.io", "bob", "p"},
        {"\nb\xc3\xb6\x62\np\xe2\x82\xac\n", "docker.io", "b\xc3\xb6\x62", "p\xe2\x82\xac"},
        {" http://r:1/v2/ \n bob \n:p:\n", "r:1", "bob", ":p:"},
    };
    struct auth_file file;
    struct err err;
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(parse(cases[i].text, &file, &err), 0);
        assert_string_equal(file.registry, cases[i].registry);
        assert_string_equal(file.user, cases[i].user);
        assert_string_equal(file.password, cases[i].password);
    }
}

static void wrong_auth_files_are_refused(void **state)
{
    static const char *const cases[] = {
        "",
        "r\n",
        "r\nbob",
        "r\nbob\n",
        "r\n\nzq",
        "r\nbob\nzq\nmore",
        "r\nb\tb\nzq",
        "r\nb:b\nzq",
        "r\nbob\nzq\xff",         /* not UTF-8 */
        "r\nbob\nzq\xed\xa0\x80", /* a surrogate */
        "r\nb\xc0\xaf\nzq",       /* too long a form */
        "r\nbob\nzq\x01",
    };
    struct buf big = BUF_INIT;
    struct auth_file file;
    struct err err;
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(parse(cases[i], &file, &err), ERR_INVALID);
        assert_null(strstr(err.text, "zq"));
    }
    assert_int_equal(auth_file_parse((struct text){"r\nbob\nzq\0z", 10}, &arena, &file, &err),
                     ERR_INVALID);
    buf_string(&big, "r\n");
    while (big.length <= AUTH_FILE_NAME_MAX + 2)
        buf_char(&big, 'b');
    assert_int_equal(parse(arena_format(&arena, "%s\np\n", buf_cstr(&big)), &file, &err),
                     ERR_INVALID);
    while (big.length <= AUTH_FILE_BYTES_MAX)
        buf_char(&big, 'b');
    assert_int_equal(auth_file_parse(buf_as_text(&big), &arena, &file, &err), ERR_TOO_BIG);
    buf_release(&big);
}

static void a_password_goes_to_its_registry_only(void **state)
{
    struct auth_file hub, own;
    struct err err;
    (void)state;

    assert_int_equal(parse("docker.io\nbob\np", &hub, &err), 0);
    assert_int_equal(parse("127.0.0.1:5000\nbob\np", &own, &err), 0);
    assert_true(auth_file_fits(&hub, "bob/app:1"));
    assert_true(auth_file_fits(&hub, "debian"));
    assert_false(auth_file_fits(&hub, "127.0.0.1:5000/bob/app:1"));
    assert_true(auth_file_fits(&own, "127.0.0.1:5000/bob/app:1"));
    assert_false(auth_file_fits(&own, "127.0.0.1:5001/bob/app:1"));
    assert_false(auth_file_fits(&own, "bob/app:1"));
    assert_false(auth_file_fits(&own, "dir:/x"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(auth_files_are_read),
    cmocka_unit_test(wrong_auth_files_are_refused),
    cmocka_unit_test(a_password_goes_to_its_registry_only),
};
UNIT_FILE(tests, setup, teardown);
