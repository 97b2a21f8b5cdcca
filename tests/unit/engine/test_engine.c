/* What an engine cannot do is refused with its name and what was wanted. */
#include "unit.h"

#include <string.h>

#include "base/err.h"
#include "engine/engine.h"

static void only_what_it_can_is_asked_of_an_engine(void **state)
{
    (void)state;
    static const struct engine_ops ops = {.name = "kind"};
    struct engine engine = {.ops = &ops};
    struct err err;
    for (unsigned all = 0; all < ENGINE_CAPABILITIES; all++) {
        const enum engine_capability capability = (enum engine_capability)all;
        engine.name = NULL;
        engine.capabilities = 0;
        assert_int_equal(engine_need(&engine, capability, &err), ERR_UNSUPPORTED);
        assert_int_equal(strncmp(err.text, "the engine \"kind\" cannot ", 25), 0);
        assert_true(strlen(err.text) > 25);
        engine.name = "own";
        assert_int_equal(engine_need(&engine, capability, &err), ERR_UNSUPPORTED);
        assert_int_equal(strncmp(err.text, "the engine \"own\" cannot ", 24), 0);
        engine.capabilities = 1u << all;
        assert_int_equal(engine_need(&engine, capability, &err), 0);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(only_what_it_can_is_asked_of_an_engine),
};
UNIT_FILE(tests, NULL, NULL);
