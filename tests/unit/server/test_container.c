/* Secrets of a job are stored sealed. */
#include "unit.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "server/container.h"
#include "sys/secret.h"

static void secrets_are_sealed_and_opened(void **state)
{
    struct spec_pair pairs[] = {{"a.b", "one"}, {"c", ""}}, *opened;
    uint8_t key[SECRET_KEY_SIZE], other[SECRET_KEY_SIZE];
    struct buf sealed = BUF_INIT;
    struct arena arena;
    struct err err;
    size_t count;
    (void)state;

    arena_init(&arena);
    secret_random(key, sizeof key);
    secret_random(other, sizeof other);
    secrets_seal(pairs, 2, key, &sealed);
    assert_int_equal(secrets_open(buf_as_text(&sealed), key, &arena, &opened, &count, &err), 0);
    assert_int_equal(count, 2);
    assert_string_equal(opened[0].name, "a.b");
    assert_string_equal(opened[0].value, "one");
    assert_string_equal(opened[1].value, "");
    assert_int_equal(secrets_open(buf_as_text(&sealed), other, &arena, &opened, &count, &err),
                     ERR_CORRUPT);
    buf_clear(&sealed);
    secrets_seal(NULL, 0, key, &sealed);
    assert_int_equal(sealed.length, 0);
    assert_int_equal(secrets_open(TEXT(""), key, &arena, &opened, &count, &err), 0);
    assert_int_equal(count, 0);
    arena_release(&arena);
    buf_release(&sealed);
}

static int begin(void **state)
{
    (void)state;
    return secret_init(NULL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(secrets_are_sealed_and_opened),
};
UNIT_FILE(tests, begin, NULL);
