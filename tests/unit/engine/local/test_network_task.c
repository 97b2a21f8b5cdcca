/* What the state of a task says of its network, and which servers of names it gets. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static void assert_resolver(const char *first, const char *second, const char *expected)
{
    char paths[2][64] = {"/tmp/test-resolver-XXXXXX", "/tmp/test-resolver-XXXXXX"};
    const char *const texts[2] = {first, second}, *const list[2] = {paths[0], paths[1]};
    for (int i = 0; i < 2; i++) {
        int fd = mkstemp(paths[i]);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, texts[i], strlen(texts[i])), strlen(texts[i]));
        close(fd);
    }
    struct buf out = BUF_INIT;
    resolver_text(list, 2, &out);
    assert_string_equal(buf_cstr(&out), expected);
    buf_release(&out);
    unlink(paths[0]);
    unlink(paths[1]);
}

/* The machine's loopback is out of reach for a task with a network of its own. */
static void servers_on_the_loopback_are_left_out(void **state)
{
    (void)state;
    assert_resolver("search x\nnameserver 10.0.0.1\nnameserver 127.0.0.53\n",
                    "nameserver 9.9.9.9\n", "search x\nnameserver 10.0.0.1\n");
    assert_resolver("nameserver 127.0.0.53\nsearch x\n", "nameserver  fd00::1\n",
                    "nameserver  fd00::1\n");
    assert_resolver("search x\n", "nameserver 9.9.9.9\n", "nameserver 9.9.9.9\n");
    assert_resolver("nameserver ::1\n", "nameserver 127.0.0.1\nsearch y\n", "search y\n");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_state_has_address_and_ports),
    cmocka_unit_test(servers_on_the_loopback_are_left_out),
};
UNIT_FILE(tests, NULL, NULL);
