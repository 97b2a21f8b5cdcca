/* A network of a job's own, as the engine makes it: published ports, a restart of the engine, and
 * what is left afterwards.
 *
 * Covers: src/engine/local/network.c, src/engine/local/network_link.c,
 * src/engine/local/network_pool.c, src/engine/local/network_rules.c,
 * src/engine/local/network_task.c, src/sys/netlink.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants these first */
#include "engine/local/task.h"
#include "world.h"
#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct world world;
static bool can_run;

enum { PATIENCE_MS = 60000, PORT = 23471 };

/* A server that says its address to each caller, until it is ended; ready when it listens (port
 * 5BAF). */
static const char serve[] = "printf '#!/bin/sh\\necho at %s' $PAI_CURRENT_CONTAINER_IP > /tmp/say; "
                            "chmod +x /tmp/say; nc -ll -p $PAI_PORT_LIST_main_0_web -e /tmp/say & "
                            "until grep -q ':5BAF ' /proc/net/tcp /proc/net/tcp6; do :; done; "
                            "echo ready; wait";

static void create(uint64_t attempt, const char *job, const char *command, uint16_t port)
{
    const struct task_options options = {.job = job, .port = port};
    struct err err = {0};
    if (world_create_with(&world, attempt, command, &options, &err) < 0)
        fail_msg("%s", err.text);
}

static void end(uint64_t attempt)
{
    world.engine->ops->kill(world.engine, (struct attempt_id){attempt}, 0, "over", false, NULL);
    assert_non_null(world_wait(&world, ENGINE_EXITED, attempt, 0, PATIENCE_MS));
}

static const char *answer(const char *address)
{
    return shell_output("busybox nc -w 60 %s %u </dev/null 2>/dev/null || echo refused", address,
                        (unsigned)PORT);
}

static const char *published(void)
{
    return shell_output("nft list map ip skep_%08x published | grep -o 'elements = .*'",
                        ((struct local_engine *)world.engine)->id);
}

static void a_port_is_reached_and_goes_with_its_task(void **state)
{
    (void)state;
    if (!can_run)
        skip();
    create(1, "alice~one", serve, PORT);
    world_log_await(&world, 1, "ready", PATIENCE_MS);
    assert_non_null(strstr(answer("127.0.0.1"), "at 10.213."));
    /* another job finds the port taken: it is tried again elsewhere */
    create(2, "bob~two", "echo never", PORT);
    const struct seen *refused = world_wait(&world, ENGINE_EXITED, 2, 0, PATIENCE_MS);
    assert_non_null(refused);
    assert_string_equal(refused->reason, "PortConflict");
    end(1);
    assert_string_equal(published(), "");
    assert_string_equal(answer("127.0.0.1"), "refused");
    create(3, "bob~two", serve, PORT);
    world_log_await(&world, 3, "ready", PATIENCE_MS);
    assert_non_null(strstr(answer("127.0.0.1"), "at 10.213."));
    end(3);
}

/* Of another server, on the same machine: its rules come first, whatever listens here. */
static void a_port_of_another_engine_is_a_conflict(void **state)
{
    (void)state;
    if (!can_run)
        skip();
    assert_int_equal(shell("nft 'add table ip skep_other0; add map ip skep_other0 published { type "
                           "inet_service : ipv4_addr; elements = { %u : 10.213.255.1 }; }'",
                           (unsigned)PORT),
                     0);
    for (unsigned i = 0; i < 2; i++) {
        world_stop(&world);
        world.config.has_private_network = i > 0;
        world_start(&world);
        create(60 + i, "alice~one", "echo never", PORT);
        const struct seen *refused = world_wait(&world, ENGINE_EXITED, 60 + i, 0, PATIENCE_MS);
        assert_non_null(refused);
        assert_string_equal(refused->reason, "PortConflict");
        assert_non_null(strstr(refused->message, "another Skep"));
        create(70 + i, "alice~one", "echo runs", PORT + 1);
        const struct seen *other = world_wait(&world, ENGINE_EXITED, 70 + i, 0, PATIENCE_MS);
        assert_non_null(other);
        assert_string_equal(other->log, "runs\n");
    }
    assert_string_equal(published(), ""); /* nothing of a task that was refused */
    assert_int_equal(shell("nft delete table ip skep_other0"), 0);
}

static const char *address_of(uint64_t attempt, const char *job)
{
    create(attempt, job, "echo $PAI_CURRENT_CONTAINER_IP", 0);
    const struct seen *end_seen = world_wait(&world, ENGINE_EXITED, attempt, 0, PATIENCE_MS);
    assert_non_null(end_seen);
    return end_seen->log;
}

/* The group of the links of this engine: other engines may work on the machine. */
static unsigned link_group(void)
{
    return ((struct local_engine *)world.engine)->id & INT32_MAX;
}

static unsigned link_count(void)
{
    return (unsigned)atoi(shell_output("ip -o link show group %u | grep -c .", link_group()));
}

/* Networks are made ahead of their jobs, and again once half of them are taken. */
static void networks_are_ready(void **state)
{
    enum { READY = 8, TAKEN = 6 };
    (void)state;
    if (!can_run)
        skip();
    const int64_t until = now_us() + PATIENCE_MS * 1000;
    while (link_count() < READY && now_us() < until)
        ;
    assert_int_equal(link_count(), READY);
    for (uint64_t i = 0; i < TAKEN; i++) {
        char job[20];
        snprintf(job, sizeof job, "user%llu~job", (unsigned long long)i);
        create(40 + i, job, "true", 0);
    }
    for (uint64_t i = 0; i < TAKEN; i++)
        assert_non_null(world_wait(&world, ENGINE_EXITED, 40 + i, 0, PATIENCE_MS));
    while (link_count() < READY + TAKEN - READY / 2 && now_us() < until)
        ;
    assert_true(link_count() >= READY + TAKEN - READY / 2);
    engine_local_housekeep(world.engine);
    engine_local_housekeep(world.engine); /* those of the jobs go, the others stay */
    assert_true(link_count() <= READY);
}

/* Two programs of the machine may talk to each other at the address that it has in the jobs'
 * networks, as those of MPI do, which try all: who is called sees that address, not another one of
 * it. */
static void the_machine_calls_itself_under_its_own_name(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET}, seen = {0};
    socklen_t size = sizeof address;
    (void)state;
    if (!can_run)
        skip();
    create(50, "dora~one", "true", 0);
    assert_non_null(world_wait(&world, ENGINE_EXITED, 50, 0, PATIENCE_MS));
    assert_int_equal(inet_pton(AF_INET, "10.213.0.1", &address.sin_addr), 1);
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 1), 0);
    const int caller = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(caller, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    assert_int_equal(connect(caller, (struct sockaddr *)&address, sizeof address), 0);
    const int called = accept4(listener, (struct sockaddr *)&seen, &size, SOCK_CLOEXEC);
    assert_true(called >= 0);
    assert_int_equal(seen.sin_addr.s_addr, address.sin_addr.s_addr);
    close(called);
    close(caller);
    close(listener);
}

/* A network waits for the next job of its user, and nobody else gets it. */
static void a_user_gets_the_last_one_again(void **state)
{
    (void)state;
    if (!can_run)
        skip();
    const char *first = address_of(30, "carol~one");
    assert_string_equal(address_of(31, "carol~two"), first);
    assert_string_not_equal(address_of(32, "carolus~one"), first);
    assert_string_not_equal(address_of(33, "car~one"), first);
    engine_local_housekeep(world.engine);
    assert_string_equal(address_of(34, "carol~three"), first);
    engine_local_housekeep(world.engine);
    engine_local_housekeep(world.engine);
    assert_string_not_equal(address_of(35, "carol~four"), first);
}

static void it_outlives_the_engine(void **state)
{
    (void)state;
    char before[200];
    if (!can_run)
        skip();
    create(10, "alice~long", serve, PORT);
    world_log_await(&world, 10, "ready", PATIENCE_MS);
    snprintf(before, sizeof before, "%s", answer("127.0.0.1"));
    assert_non_null(strstr(before, "at 10.213."));
    world_stop(&world);
    assert_string_equal(answer("127.0.0.1"), before);
    world.config.has_private_network = false; /* what runs keeps what it has */
    world_start(&world);
    assert_string_equal(answer("127.0.0.1"), before);
    world_stop(&world);
    world.config.has_private_network = true;
    world_start(&world);
    assert_string_equal(answer("127.0.0.1"), before);
    /* a task of the same job comes into the same network */
    create(11, "alice~long",
           "nc -w 60 127.0.0.1 23471 </dev/null; echo \"I am at $PAI_CURRENT_CONTAINER_IP\"", 0);
    const struct seen *peer = world_wait(&world, ENGINE_EXITED, 11, 0, PATIENCE_MS);
    assert_non_null(peer);
    assert_non_null(strstr(peer->log, before)); /* it calls the other one at its own loopback */
    assert_non_null(strstr(strstr(peer->log, "I am "), before));
    end(10);
    assert_string_equal(published(), "");
}

/* The next engine makes networks with the first task that wants one: what this task has left cannot
 * wait for that. */
static void the_ports_of_a_task_that_ended_between_two_engines_are_free(void **state)
{
    (void)state;
    if (!can_run)
        skip();
    char table[40];
    snprintf(table, sizeof table, "skep_%08x", ((struct local_engine *)world.engine)->id);
    create(90, "dave~between", "echo ready; exec sleep 100000", PORT);
    world_log_await(&world, 90, "ready", PATIENCE_MS);
    world_stop(&world);
    assert_non_null(strstr(shell_output("nft list table ip %s", table), "23471 :"));
    shell("kill -9 $(cat %s/run/tasks/90/init.pid)", world.folder);
    world_monitor_await(&world, 90, PATIENCE_MS);
    world.config.has_private_network = false;
    world_start(&world);
    assert_non_null(world_wait(&world, ENGINE_EXITED, 90, 0, PATIENCE_MS));
    assert_string_equal(shell_output("nft list tables | grep -F %s", table), "");
    world_stop(&world);
    world.config.has_private_network = true;
    world_start(&world);
}

static void nothing_is_left(void **state)
{
    (void)state;
    if (!can_run)
        skip();
    char table[40];
    snprintf(table, sizeof table, "skep_%08x", ((struct local_engine *)world.engine)->id);
    const unsigned group = link_group();
    create(20, "alice~last", "true", PORT);
    assert_non_null(world_wait(&world, ENGINE_EXITED, 20, 0, PATIENCE_MS));
    world_stop(&world);
    assert_string_equal(shell_output("nft list tables | grep -F %s", table), "");
    assert_string_equal(shell_output("ip -o link show group %u", group), "");
    world_start(&world);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks_are_ready),
        cmocka_unit_test(a_port_is_reached_and_goes_with_its_task),
        cmocka_unit_test(a_port_of_another_engine_is_a_conflict),
        cmocka_unit_test(the_machine_calls_itself_under_its_own_name),
        cmocka_unit_test(a_user_gets_the_last_one_again),
        cmocka_unit_test(it_outlives_the_engine),
        cmocka_unit_test(the_ports_of_a_task_that_ended_between_two_engines_are_free),
        cmocka_unit_test(nothing_is_left),
    };
    if (!world_open(&world))
        return 77;
    if (shell("PATH=/usr/sbin:/sbin:$PATH command -v nft ip >/dev/null") != 0) {
        fprintf(stderr, "skipped: nft or ip is not installed\n");
        return 77;
    }
    can_run = true;
    world.config.has_private_network = true;
    world_start(&world);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    world_close(&world);
    return failed;
}
