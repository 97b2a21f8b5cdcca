/* What the state of a task says of its user ids. */
#include "unit.h"

#include "base/buf.h"
#include "base/json_writer.h"
#include "engine/local/task.h"

static void the_state_has_the_first_id(void **state)
{
    static const struct {
        uint32_t first;
        const char *json;
    } cases[] = {
        {0, "{}"}, /* the machine's ids */
        {2000748544, "{\"ids\":2000748544}"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct task_ids ids = {.place = {.first = cases[i].first}};
        struct buf out = BUF_INIT;
        struct json_writer json;
        json_init(&json, &out);
        json_object(&json);
        task_ids_write(&ids, &json);
        json_object_end(&json);
        assert_string_equal(buf_cstr(&out), cases[i].json);
        buf_release(&out);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_state_has_the_first_id),
};
UNIT_FILE(tests, NULL, NULL);
