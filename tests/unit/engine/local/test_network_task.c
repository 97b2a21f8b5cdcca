/* What the state of a task says of its network, and which servers of names it gets. */
#include "unit.h"

#include <stdio.h>
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

struct told {
    unsigned count;
    char reason[40], message[300];
};

static void told_put(void *context, const struct engine_event *event)
{
    struct told *told = context;
    told->count++;
    snprintf(told->reason, sizeof told->reason, "%s", event->reason);
    snprintf(told->message, sizeof told->message, "%s", event->message);
}

/* A machine that can have no networks of jobs, as its subnet is none. */
static void by_job_the_machines_network_is_for_some_or_for_all(void **state)
{
    struct told told = {0};
    struct local_engine local = {
        .sink = {.context = &told, .post = told_put},
        .config = {.subnet = "nowhere", .has_private_network = true, .is_network_by_job = true}};
    struct container wanted = {.job = "ann~a", .may_have_host_network = true};
    struct task task = {.attempt = {7}, .id = "7"};
    struct network_place place = {.address = "x"};
    (void)state;
    pthread_mutex_init(&local.networks_lock, NULL);
    /* one that may have it, and one whose virtual cluster does: nothing is made for them */
    assert_int_equal(task_network_join(&local, &task, &wanted, 0, &place), 0);
    wanted.may_have_host_network = false;
    const unsigned right = 1u << RIGHT_HOST_NETWORK;
    assert_int_equal(task_network_join(&local, &task, &wanted, right, &place), 0);
    assert_string_equal(place.address, "");
    assert_int_equal(local.networks_retry_ms, 0);
    assert_int_equal(told.count, 0);
    /* the others are there as well, and their jobs' events say why */
    assert_int_equal(task_network_join(&local, &task, &wanted, 0, &place), 0);
    assert_string_equal(place.address, "");
    assert_string_equal(told.reason, "MachineNetwork");
    assert_non_null(strstr(told.message, "\"nowhere\" is not ADDRESS/BITS"));
    assert_null(task.fail_reason);
    /* which is not tried anew for each */
    const int64_t retry_ms = local.networks_retry_ms;
    assert_int_equal(task_network_join(&local, &task, &wanted, 0, &place), 0);
    assert_int_equal(local.networks_retry_ms, retry_ms);
    assert_int_equal(told.count, 2);
    pthread_mutex_destroy(&local.networks_lock);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_state_has_address_and_ports),
    cmocka_unit_test(servers_on_the_loopback_are_left_out),
    cmocka_unit_test(by_job_the_machines_network_is_for_some_or_for_all),
};
UNIT_FILE(tests, NULL, NULL);
