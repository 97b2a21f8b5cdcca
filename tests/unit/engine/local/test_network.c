/* Networks of jobs, in a network namespace of the test's own: the kernel, its rules and its links
 * are real ones. That takes root and nft. What containers do in them is in
 * tests/system/engine/test_network.c. */
#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "engine/local/network.h"
#include "sys/cleanup.h"
#include "sys/file.h"

enum { PORT = 23471, ID = 0x5ca1ab1e };

static const char forwarding[] = "/proc/sys/net/ipv4/ip_forward";
static const struct network_config config = {.subnet = "10.213.0.0/16", .id = ID};
static const struct engine_port port = {.first = PORT, .count = 1};
static int home = -1; /* the network namespace of the other tests */
static bool can_run;
static struct networks *networks;

/* Of the file: from now on in a namespace of its own, in which nothing is set up. */
static int away(void **state)
{
    (void)state;
    home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    can_run = home >= 0 && geteuid() == 0 && unshare(CLONE_NEWNET) == 0 &&
              system("ip link set lo up && nft list tables >/dev/null") == 0;
    return 0;
}

static int back(void **state)
{
    (void)state;
    if (geteuid() == 0 && setns(home, CLONE_NEWNET) < 0)
        return -1;
    close(home);
    return 0;
}

static void setting_put(const char *path, const char *text)
{
    cleanup_close int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

/* What `nft list …` says; "" when there is no such thing. */
static const char *rules(const char *what)
{
    static char text[16384];
    char command[160];
    snprintf(command, sizeof command, "nft list %s 2>/dev/null", what);
    FILE *out = popen(command, "re");
    assert_non_null(out);
    text[fread(text, 1, sizeof text - 1, out)] = '\0';
    pclose(out);
    return text;
}

static const char *published(void)
{
    return rules("map ip skep_5ca1ab1e published");
}

static void open_networks(void)
{
    struct err err = {0};
    if (networks_new(&config, &networks, &err) < 0)
        fail_msg("%s", err.text);
}

static int close_networks(void **state)
{
    (void)state;
    networks_free(networks); /* NULL is fine */
    networks = NULL;
    return 0;
}

static void join(uint64_t attempt, const char *job, size_t ports, struct network_place *place)
{
    struct err err = {0};
    if (networks_join(networks, job, (struct attempt_id){attempt}, &port, ports, place, &err) < 0)
        fail_msg("%s", err.text);
}

static void leave(uint64_t attempt)
{
    assert_int_equal(networks_leave(networks, (struct attempt_id){attempt}, NULL), 0);
}

/* With the first network the machine forwards packets, and has the engine's rules; both are what
 * a task's network is useless without. The rules go with the engine. */
static void the_machine_is_made_ready(void **state)
{
    (void)state;
    if (!can_run)
        skip();
    cleanup_buf struct buf text = BUF_INIT;
    setting_put(forwarding, "0");
    open_networks();
    assert_int_equal(file_read(forwarding, 16, &text, NULL), 0);
    assert_int_equal(text.at[0], '1');
    assert_non_null(strstr(rules("table ip skep_5ca1ab1e"), "10.213.0.0/16"));
    close_networks(NULL);
    assert_string_equal(rules("tables"), "");
}

/* A port leads to the task that has it, as long as it has it. */
static void a_port_is_published_and_withdrawn(void **state)
{
    (void)state;
    if (!can_run)
        skip();
    struct network_place place;
    char element[64];
    open_networks();
    join(1, "alice~one", 1, &place);
    assert_int_equal(strncmp(place.address, "10.213.", 7), 0);
    snprintf(element, sizeof element, "%d : %s", PORT, place.address);
    assert_non_null(strstr(published(), element));
    leave(1);
    assert_null(strstr(published(), "elements"));
    leave(1); /* nothing is left of it */
}

/* 1: the setting of the link is on; also where the kernel does not know it. */
static int setting_of(const char *version, const char *link, const char *name)
{
    cleanup_buf struct buf text = BUF_INIT;
    char path[128];
    snprintf(path, sizeof path, "/proc/sys/net/%s/conf/%s/%s", version, link, name);
    if (access(path, F_OK) < 0 && strcmp(version, "ipv6") == 0)
        return 1;
    assert_int_equal(file_read(path, 16, &text, NULL), 0);
    return text.at[0] - '0';
}

/* The rules are for IPv4: nothing may pass beside them. Programs of the machine reach published
 * ports at 127.0.0.1 as well. */
static void a_link_has_no_second_way(void **state)
{
    (void)state;
    if (!can_run)
        skip();
    struct network_place place;
    char link[IFNAMSIZ];
    unsigned third, fourth;
    open_networks();
    join(1, "alice~one", 0, &place);
    assert_int_equal(sscanf(place.address, "10.213.%u.%u", &third, &fourth), 2);
    snprintf(link, sizeof link, "skep%x", third << 8 | fourth);
    assert_true(if_nametoindex(link) > 0);
    assert_int_equal(setting_of("ipv6", link, "disable_ipv6"), 1);
    assert_int_equal(setting_of("ipv4", link, "route_localnet"), 1);
}

static struct sockaddr_in address_of(const char *text)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    assert_int_equal(inet_pton(AF_INET, text, &address.sin_addr), 1);
    return address;
}

/* Somebody's program has the port, or another task: the job is told, and has no network then. */
static void a_port_in_use_is_a_conflict(void **state)
{
    (void)state;
    if (!can_run)
        skip();
    struct network_place place;
    struct err err = {0};
    const struct sockaddr_in any = address_of("0.0.0.0");
    open_networks();
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&any, sizeof any), 0);
    assert_int_equal(
        networks_join(networks, "alice~one", (struct attempt_id){1}, &port, 1, &place, &err),
        ERR_CONFLICT);
    assert_non_null(strstr(err.text, "port conflict: port 23471"));
    close(fd);
    join(1, "alice~one", 1, &place);
    assert_int_equal(
        networks_join(networks, "bob~two", (struct attempt_id){2}, &port, 1, &place, &err),
        ERR_CONFLICT);
    assert_non_null(strstr(err.text, "another task's"));
    leave(1);
    join(2, "bob~two", 1, &place);
    leave(2);
}

/* The tasks of a job meet in one network, and others have their own; what was a user's may be the
 * same user's again, but nobody else's. */
static void a_network_is_of_one_job(void **state)
{
    (void)state;
    if (!can_run)
        skip();
    struct network_place one, same, other, next, stranger;
    struct engine_stats stats = {0};
    open_networks();
    join(1, "alice~one", 0, &one);
    join(2, "alice~one", 0, &same);
    join(3, "alice~two", 0, &other);
    assert_string_equal(one.address, same.address);
    assert_string_equal(one.path, same.path);
    assert_string_not_equal(one.address, other.address);
    networks_traffic(networks, (struct attempt_id){2}, &stats);
    assert_int_equal(stats.network_tasks, 2);
    leave(1);
    networks_traffic(networks, (struct attempt_id){2}, &stats);
    assert_int_equal(stats.network_tasks, 1);
    leave(2);
    join(4, "bob~one", 0, &stranger);
    assert_string_not_equal(stranger.address, one.address);
    join(5, "alice~three", 0, &next);
    assert_string_equal(next.address, one.address);
}

/* A process in a network namespace; returns when it is there. */
static pid_t process_begin(const char *path)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || fd < 0 || setns(fd, CLONE_NEWNET) < 0 ||
            write(ready[1], "", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return child;
}

/* What ran on goes on at its address, with its ports, under the next engine. */
static void a_task_that_runs_is_adopted(void **state)
{
    (void)state;
    if (!can_run)
        skip();
    struct network_place place;
    struct engine_stats stats = {0};
    struct err err = {0};
    char element[64];
    open_networks();
    join(1, "alice~one", 1, &place);
    const pid_t child = process_begin(place.path);
    close_networks(NULL);
    open_networks();
    assert_null(strstr(published(), "elements"));
    assert_int_equal(networks_adopt(networks, "alice~one", (struct attempt_id){1}, &port, 1,
                                    place.address, child, &err),
                     0);
    snprintf(element, sizeof element, "%d : %s", PORT, place.address);
    assert_non_null(strstr(published(), element));
    networks_traffic(networks, (struct attempt_id){1}, &stats);
    assert_int_equal(stats.network_tasks, 1);
    leave(1);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

/* A task that has ended meanwhile, or whose record is spoilt, is an error, and no member. */
static void what_is_gone_is_not_adopted(void **state)
{
    (void)state;
    if (!can_run)
        skip();
    struct engine_stats stats = {0};
    struct err err = {0};
    const pid_t child = fork();
    if (child == 0)
        _exit(0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    open_networks();
    assert_int_equal(networks_adopt(networks, "alice~one", (struct attempt_id){1}, &port, 1,
                                    "10.213.0.9", child, &err) < 0,
                     1);
    assert_non_null(strstr(err.text, "/ns/net"));
    assert_int_equal(networks_adopt(networks, "alice~one", (struct attempt_id){1}, &port, 1,
                                    "10.213.0", getpid(), &err),
                     ERR_CORRUPT);
    assert_null(strstr(published(), "elements"));
    networks_traffic(networks, (struct attempt_id){1}, &stats);
    assert_int_equal(stats.network_tasks, 0);
}

/* What stands in the configuration is a network of the right size. */
static void a_subnet_is_checked(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",          "10.213.0.0",    "10.213.0.0/",
                                        "10.213/16", "10.213.0.0/7",  "10.213.0.0/29",
                                        "fd00::/16", "10.213.0.0/1x", "10.213.0.256/16"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        const struct network_config other = {.subnet = wrong[i], .id = ID};
        struct err err = {0};
        assert_int_equal(networks_new(&other, &networks, &err), ERR_INVALID);
        assert_string_equal(err.path, "engine.network.subnet");
        struct err checked = {0};
        assert_int_equal(network_subnet_check(wrong[i], &checked), ERR_INVALID);
        assert_string_equal(checked.text, err.text);
        assert_null(networks);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown(the_machine_is_made_ready, close_networks),
    cmocka_unit_test_teardown(a_port_is_published_and_withdrawn, close_networks),
    cmocka_unit_test_teardown(a_link_has_no_second_way, close_networks),
    cmocka_unit_test_teardown(a_port_in_use_is_a_conflict, close_networks),
    cmocka_unit_test_teardown(a_network_is_of_one_job, close_networks),
    cmocka_unit_test_teardown(a_task_that_runs_is_adopted, close_networks),
    cmocka_unit_test_teardown(what_is_gone_is_not_adopted, close_networks),
    cmocka_unit_test_teardown(a_subnet_is_checked, close_networks),
};
UNIT_FILE(tests, away, back);
