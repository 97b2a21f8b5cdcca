/* What the state of a task says of its network. */
#include "unit.h"

#include "base/buf.h"
#include "base/json_writer.h"
#include "engine/local/network.h"
#include "engine/local/task.h"

static void the_state_has_address_and_ports(void **state)
{
    static const struct engine_port ports[] = {{5000, 1}, {6000, 20}};
    static const struct {
        struct network_place place;
        const char *json;
    } cases[] = {
        {{.address = ""}, "{}"}, /* the machine's own network */
        {{.address = "10.213.0.7"}, "{\"address\":\"10.213.0.7\",\"ports\":[5000,1,6000,20]}"},
    };
    const struct container container = {.ports = ports, .port_count = 2};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf out = BUF_INIT;
        struct json_writer json;
        json_init(&json, &out);
        json_object(&json);
        task_network_write(&container, &cases[i].place, &json);
        json_object_end(&json);
        assert_string_equal(buf_cstr(&out), cases[i].json);
        buf_release(&out);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_state_has_address_and_ports),
};
UNIT_FILE(tests, NULL, NULL);
