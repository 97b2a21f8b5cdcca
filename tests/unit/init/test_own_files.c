/* What the files of a container's control group say: did its memory run out, what has it used? */
#include "unit.h"

#include "init/log_line.h"
#include "init/own_files.h"

static enum exit_memory judged(const char *events, const char *control, const char *failures,
                               const char *limit, const char *most)
{
    const struct own_memory memory = {.events = text_of(events),
                                      .oom_control = text_of(control),
                                      .failures = text_of(failures),
                                      .limit = text_of(limit),
                                      .most = text_of(most)};
    return own_memory_judge(&memory);
}

static void version_two(void **state)
{
    (void)state;
    static const char *const none = "low 0\nhigh 0\nmax 12\noom 0\noom_kill 0\n";
    assert_int_equal(judged(none, "oom_kill 3\n", "", "", ""), EXIT_MEMORY_LASTED);
    assert_int_equal(judged("max 12\noom 1\noom_kill 2\n", "", "", "", ""), EXIT_MEMORY_LIMIT);
    assert_int_equal(judged("max 0\noom 0\noom_kill 1\n", "", "", "", ""), EXIT_MEMORY_MACHINE);
    assert_int_equal(judged("oom_kill many\n", "", "", "", ""), EXIT_MEMORY_LASTED);
    static const char *const of_another = "max 0\noom 0\noom_kill 1\n";
    assert_int_equal(judged(of_another, "", "", "max\n", "9000000000\n"), EXIT_MEMORY_MACHINE);
    assert_int_equal(judged(of_another, "", "", "67108864\n", "50331647\n"), EXIT_MEMORY_MACHINE);
    assert_int_equal(judged(of_another, "", "", "67108864\n", "50331648\n"), EXIT_MEMORY_LIMIT);
    assert_int_equal(judged(of_another, "", "", "67108864\n", ""), EXIT_MEMORY_LIMIT);
}

static void version_one(void **state)
{
    (void)state;
    static const char *const one = "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n";
    assert_int_equal(judged("", "", "", "", ""), EXIT_MEMORY_LASTED);
    assert_int_equal(judged("", "oom_kill_disable 0\noom_kill 0\n", "9\n", "", ""),
                     EXIT_MEMORY_LASTED);
    assert_int_equal(judged("", one, "1\n", "67108864\n", "1000\n"), EXIT_MEMORY_LIMIT);
    assert_int_equal(judged("", one, "0\n", "67108864\n", "67108864\n"), EXIT_MEMORY_LIMIT);
    assert_int_equal(judged("", one, "0\n", "67108864\n", "50331648\n"), EXIT_MEMORY_LIMIT);
    assert_int_equal(judged("", one, "0\n", "67108864\n", "50331647\n"), EXIT_MEMORY_MACHINE);
    assert_int_equal(judged("", one, "0\n", "9223372036854771712\n", "99999999999\n"),
                     EXIT_MEMORY_MACHINE);
    assert_int_equal(judged("", one, "0\n", "", "1000\n"), EXIT_MEMORY_MACHINE);
}

static void use_of_version_two(void **state)
{
    (void)state;
    struct log_line_use use;
    const struct own_use own = {
        .cpu_stat = TEXT("usage_usec 1500\nuser_usec 1000\n"),
        .memory = TEXT("1048576\n"),
        .io = TEXT("8:0 rbytes=100 wbytes=20 rios=9\n8:16 rbytes=1 wbytes=2\n"),
        .pids = TEXT("12\n")};
    assert_true(own_use_read(&own, &use));
    assert_int_equal(use.cpu_ns, 1500000);
    assert_int_equal(use.memory_bytes, 1048576);
    assert_int_equal(use.read_bytes, 101);
    assert_int_equal(use.written_bytes, 22);
    assert_int_equal(use.pids, 12);
    assert_false(own_use_read(&(struct own_use){0}, &use));
}

static void use_of_version_one(void **state)
{
    (void)state;
    struct log_line_use use;
    const struct own_use own = {
        .cpuacct = TEXT("77\n"),
        .memory_v1 = TEXT("4096\n"),
        .blkio = TEXT("8:0 Read 5\n8:0 Write 6\n8:0 Total 11\n8:16 Read 1\nTotal 12\n"),
        .pids_v1 = TEXT("max\n")};
    assert_true(own_use_read(&own, &use));
    assert_int_equal(use.cpu_ns, 77);
    assert_int_equal(use.memory_bytes, 4096);
    assert_int_equal(use.read_bytes, 6);
    assert_int_equal(use.written_bytes, 6);
    assert_int_equal(use.pids, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(version_two),
    cmocka_unit_test(version_one),
    cmocka_unit_test(use_of_version_two),
    cmocka_unit_test(use_of_version_one),
};
UNIT_FILE(tests, NULL, NULL);
