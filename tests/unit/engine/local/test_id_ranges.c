/* Ranges of user ids: no two jobs share one, whatever engines come and go; and how their folders
 * are seen. */
#include "folder.h"
#include "unit.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/memory.h"
#include "engine/local/id_ranges.h"
#include "sys/cleanup.h"

enum { FIRST = 20 * ID_RANGE_IDS, ENGINES = 2, JOBS = 7, ATTEMPTS = 40, STEPS = 20000 };

static struct id_ranges *ranges_of(const char *owner, uint32_t count)
{
    struct err err = {0};
    struct id_ranges *ranges = NULL;
    mkdir(in_folder(owner), 0755);
    const struct id_ranges_config config = {
        .first = FIRST, .count = count, .registry = in_folder("ids"), .owner = in_folder(owner)};
    assert_int_equal(id_ranges_new(&config, &ranges, &err), 0);
    return ranges;
}

static uint32_t joined(struct id_ranges *ranges, const char *job, uint64_t attempt)
{
    struct err err = {0};
    uint32_t first = 0;
    assert_int_equal(id_ranges_join(ranges, job, (struct attempt_id){attempt}, NULL, &first, &err),
                     0);
    return first;
}

static bool is_noted(uint32_t first)
{
    char name[40];
    struct stat stat;
    snprintf(name, sizeof name, "ids/%u", first);
    return lstat(in_folder(name), &stat) == 0;
}

static void tasks_of_a_job_share_a_range(void **state)
{
    (void)state;
    struct id_ranges *ranges = ranges_of("one", 10);
    const uint32_t first = joined(ranges, "ann~a", 1);
    assert_int_equal(first % ID_RANGE_IDS, 0);
    assert_in_range(first, FIRST + ID_RANGE_IDS, FIRST + 10 * ID_RANGE_IDS);
    assert_int_equal(joined(ranges, "ann~a", 2), first);
    assert_int_not_equal(joined(ranges, "ann~b", 3), first);
    id_ranges_leave(ranges, (struct attempt_id){1});
    assert_true(is_noted(first));
    id_ranges_leave(ranges, (struct attempt_id){2});
    assert_false(is_noted(first));
    id_ranges_leave(ranges, (struct attempt_id){2}); /* harmless */
    id_ranges_leave(ranges, (struct attempt_id){3});
    id_ranges_free(ranges);
}

static void one_that_was_given_back_comes_last(void **state)
{
    (void)state;
    struct id_ranges *ranges = ranges_of("one", 3);
    const uint32_t first = joined(ranges, "a", 1);
    id_ranges_leave(ranges, (struct attempt_id){1});
    for (uint64_t i = 0; i < 2; i++) {
        char job[8];
        snprintf(job, sizeof job, "b%llu", (unsigned long long)i);
        assert_int_not_equal(joined(ranges, job, 2 + i), first);
    }
    assert_int_equal(joined(ranges, "c", 4), first);
    for (uint64_t i = 2; i <= 4; i++)
        id_ranges_leave(ranges, (struct attempt_id){i});
    id_ranges_free(ranges);
}

struct seen {
    struct id_ranges *ranges;
    uint32_t taken, freed;
};

static void taken_see(void *context, uint32_t first)
{
    ((struct seen *)context)->taken = first;
}

static void freed_see(void *context)
{
    ((struct seen *)context)->freed++;
}

static void a_job_gets_what_it_wishes_when_it_is_free(void **state)
{
    (void)state;
    struct err err = {0};
    struct seen seen = {0};
    const uint32_t second = FIRST + 2 * ID_RANGE_IDS, third = second + ID_RANGE_IDS;
    /* none of the first three can be given: of others, the reserved one, no range */
    const uint32_t firsts[] = {FIRST + 4 * ID_RANGE_IDS, FIRST, second + 1, second, third};
    const struct id_wish wish = {firsts, COUNT_OF(firsts)};
    uint32_t first = 0;
    mkdir(in_folder("wishes"), 0755);
    const struct id_ranges_config config = {.first = FIRST,
                                            .count = 3,
                                            .registry = in_folder("wished"),
                                            .owner = in_folder("wishes"),
                                            .on_taken = taken_see,
                                            .context = &seen};
    assert_int_equal(id_ranges_new(&config, &seen.ranges, &err), 0);
    assert_int_equal(
        id_ranges_join(seen.ranges, "ann~a", (struct attempt_id){1}, &wish, &first, &err), 0);
    assert_int_equal(first, second);
    assert_int_equal(seen.taken, second);
    seen.taken = 0;
    /* the job has its range, and the task is counted once */
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            id_ranges_join(seen.ranges, "ann~a", (struct attempt_id){2}, NULL, &first, &err), 0);
    assert_int_equal(first, second);
    assert_int_equal(seen.taken, 0);
    assert_int_equal(
        id_ranges_join(seen.ranges, "ann~b", (struct attempt_id){3}, &wish, &first, &err), 0);
    assert_int_equal(first, third);
    assert_false(id_ranges_while_free(seen.ranges, second, freed_see, &seen));
    id_ranges_leave(seen.ranges, (struct attempt_id){1});
    assert_false(id_ranges_while_free(seen.ranges, second, freed_see, &seen));
    id_ranges_leave(seen.ranges, (struct attempt_id){2});
    assert_int_equal(seen.freed, 0);
    assert_true(id_ranges_while_free(seen.ranges, second, freed_see, &seen));
    assert_int_equal(seen.freed, 1);
    /* left by an earlier engine on this folder, of which something may run */
    char link[300];
    snprintf(link, sizeof link, "%s", in_folder("wishes"));
    char name[40];
    snprintf(name, sizeof name, "wished/%u", FIRST + ID_RANGE_IDS);
    assert_int_equal(symlink(link, in_folder(name)), 0);
    assert_false(id_ranges_while_free(seen.ranges, FIRST + ID_RANGE_IDS, freed_see, &seen));
    assert_int_equal(unlink(in_folder(name)), 0);
    assert_int_equal(
        id_ranges_join(seen.ranges, "ann~c", (struct attempt_id){4}, &wish, &first, &err), 0);
    assert_int_equal(first, second);
    id_ranges_free(seen.ranges);
}

static void the_end_of_all_ranges_is_said(void **state)
{
    (void)state;
    struct err err = {0};
    uint32_t first = 0;
    struct id_ranges *ranges = ranges_of("one", 2);
    joined(ranges, "a", 1);
    joined(ranges, "b", 2);
    assert_int_equal(id_ranges_join(ranges, "c", (struct attempt_id){3}, NULL, &first, &err),
                     ERR_TOO_BIG);
    assert_string_equal(err.text,
                        "all 2 ranges of user ids are in use (engine.userNamespaces.jobs)");
    joined(ranges, "b", 4); /* has one */
    id_ranges_leave(ranges, (struct attempt_id){1});
    joined(ranges, "c", 3);
    for (uint64_t i = 2; i <= 4; i++)
        id_ranges_leave(ranges, (struct attempt_id){i});
    id_ranges_free(ranges);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    static const struct {
        uint32_t first, count;
        const char *path;
    } cases[] = {
        {0, 10, "engine.userNamespaces.firstId"},
        {FIRST + 1, 10, "engine.userNamespaces.firstId"},
        {FIRST, 0, "engine.userNamespaces.jobs"},
        {FIRST, ID_RANGES_COUNT_MAX + 1, "engine.userNamespaces.jobs"},
        {0xffff0000, 1, "engine.userNamespaces.jobs"},
        {0xfffe0000, 1, "engine.userNamespaces.jobs"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct err err = {0};
        struct id_ranges *ranges = NULL;
        const struct id_ranges_config config = {.first = cases[i].first,
                                                .count = cases[i].count,
                                                .registry = in_folder("ids"),
                                                .owner = in_folder("one")};
        assert_int_equal(id_ranges_new(&config, &ranges, &err), ERR_INVALID);
        assert_string_equal(err.path, cases[i].path);
        assert_null(ranges);
    }
    struct err err = {0};
    struct id_ranges *ranges = NULL;
    const struct id_ranges_config most = {.first = ID_RANGES_FIRST,
                                          .count = ID_RANGES_COUNT,
                                          .registry = in_folder("ids"),
                                          .owner = in_folder("one")};
    assert_int_equal(id_ranges_new(&most, &ranges, &err), 0);
    id_ranges_free(ranges);
}

static void a_restart_keeps_what_runs_and_frees_the_rest(void **state)
{
    (void)state;
    struct err err = {0};
    struct id_ranges *ranges = ranges_of("one", 10);
    const uint32_t kept = joined(ranges, "a", 1), lost = joined(ranges, "b", 2);
    id_ranges_free(ranges); /* as by SIGKILL: nothing is given back */
    assert_true(is_noted(kept) && is_noted(lost));
    ranges = ranges_of("one", 10);
    assert_int_equal(id_ranges_adopt(ranges, "a", (struct attempt_id){1}, kept, &err), 0);
    assert_int_equal(id_ranges_adopt(ranges, "c", (struct attempt_id){9}, kept, &err),
                     ERR_CONFLICT);
    assert_non_null(strstr(err.text, "another job"));
    id_ranges_settle(ranges);
    assert_true(is_noted(kept));
    assert_false(is_noted(lost));
    assert_int_equal(joined(ranges, "a", 3), kept);
    id_ranges_leave(ranges, (struct attempt_id){1});
    id_ranges_leave(ranges, (struct attempt_id){3});
    assert_false(is_noted(kept));
    id_ranges_free(ranges);
}

/* The register is lost with /run, or the configuration was another one. */
static void what_runs_is_adopted_in_any_case(void **state)
{
    (void)state;
    struct err err = {0};
    struct id_ranges *ranges = ranges_of("one", 3);
    const uint32_t elsewhere = 1000 * ID_RANGE_IDS;
    assert_int_equal(id_ranges_adopt(ranges, "a", (struct attempt_id){1}, elsewhere, &err), 0);
    assert_true(is_noted(elsewhere));
    assert_int_equal(joined(ranges, "a", 2), elsewhere);
    id_ranges_leave(ranges, (struct attempt_id){1});
    id_ranges_leave(ranges, (struct attempt_id){2});
    id_ranges_free(ranges);
}

static void engines_beside_each_other_share_none(void **state)
{
    (void)state;
    struct err err = {0};
    struct id_ranges *one = ranges_of("one", 2), *two = ranges_of("two", 2);
    const uint32_t first = joined(one, "a", 1);
    assert_int_not_equal(joined(two, "a", 1), first);
    assert_int_equal(id_ranges_adopt(two, "b", (struct attempt_id){2}, first, &err), ERR_CONFLICT);
    assert_non_null(strstr(err.text, "another engine"));
    id_ranges_settle(two);
    assert_true(is_noted(first));
    id_ranges_free(one);
    rmdir(in_folder("one"));
    id_ranges_settle(two); /* that engine's folder is gone, and so is the engine */
    assert_false(is_noted(first));
    id_ranges_leave(two, (struct attempt_id){1});
    id_ranges_free(two);
}

/* --- a random walk beside a model --- */

static struct {
    struct id_ranges *ranges[ENGINES];
    struct {
        bool is_there;
        unsigned job;
        uint32_t first;
    } attempts[ENGINES][ATTEMPTS];
} walk;

static const char *const owners[ENGINES] = {"one", "two"};

static const char *job_name(unsigned job)
{
    static char names[JOBS][16];
    snprintf(names[job], sizeof names[job], "ann~%u", job);
    return names[job];
}

static uint32_t model_range(unsigned engine, unsigned job)
{
    for (size_t i = 0; i < ATTEMPTS; i++)
        if (walk.attempts[engine][i].is_there && walk.attempts[engine][i].job == job)
            return walk.attempts[engine][i].first;
    return 0;
}

static size_t model_count(uint32_t *is_used)
{
    size_t count = 0;
    for (unsigned engine = 0; engine < ENGINES; engine++)
        for (unsigned job = 0; job < JOBS; job++) {
            const uint32_t first = model_range(engine, job);
            if (!first)
                continue;
            const uint32_t bit = 1u << (first - FIRST) / ID_RANGE_IDS;
            assert_int_equal(*is_used & bit, 0); /* nobody else's */
            *is_used |= bit;
            count++;
        }
    return count;
}

static void walk_join(unsigned engine, size_t at, uint32_t count)
{
    const unsigned job = (unsigned)rand() % JOBS;
    uint32_t first = 0, used = 0;
    struct err err = {0};
    const uint32_t known = model_range(engine, job);
    const bool is_full = model_count(&used) == count;
    const int result = id_ranges_join(walk.ranges[engine], job_name(job),
                                      (struct attempt_id){at + 1}, NULL, &first, &err);
    assert_int_equal(result, !known && is_full ? ERR_TOO_BIG : 0);
    if (result < 0)
        return;
    if (known)
        assert_int_equal(first, known);
    walk.attempts[engine][at].is_there = true;
    walk.attempts[engine][at].job = job;
    walk.attempts[engine][at].first = first;
}

/* Killed, and started again: some of the tasks have ended meanwhile. */
static void walk_restart(unsigned engine, uint32_t count)
{
    struct err err = {0};
    id_ranges_free(walk.ranges[engine]);
    walk.ranges[engine] = ranges_of(owners[engine], count);
    for (size_t i = 0; i < ATTEMPTS; i++) {
        if (!walk.attempts[engine][i].is_there)
            continue;
        walk.attempts[engine][i].is_there = rand() % 4 > 0;
        if (walk.attempts[engine][i].is_there)
            assert_int_equal(
                id_ranges_adopt(walk.ranges[engine], job_name(walk.attempts[engine][i].job),
                                (struct attempt_id){i + 1}, walk.attempts[engine][i].first, &err),
                0);
    }
    id_ranges_settle(walk.ranges[engine]);
}

static void no_two_jobs_ever_share_an_id(void **state)
{
    (void)state;
    const uint32_t count = 9; /* fewer than jobs of both engines */
    srand(20261122);
    for (unsigned engine = 0; engine < ENGINES; engine++)
        walk.ranges[engine] = ranges_of(owners[engine], count);
    for (size_t step = 0; step < STEPS; step++) {
        const unsigned engine = (unsigned)rand() % ENGINES;
        const size_t at = (size_t)rand() % ATTEMPTS;
        uint32_t used = 0;
        if (rand() % 200 == 0) {
            walk_restart(engine, count);
        } else if (walk.attempts[engine][at].is_there) {
            id_ranges_leave(walk.ranges[engine], (struct attempt_id){at + 1});
            walk.attempts[engine][at].is_there = false;
        } else if (rand() % 2) {
            walk_join(engine, at, count);
        }
        const size_t live = model_count(&used);
        assert_in_range(live, 0, count);
        for (uint32_t i = 1; i <= count; i++)
            assert_int_equal(is_noted(FIRST + i * ID_RANGE_IDS), used >> i & 1);
    }
    for (unsigned engine = 0; engine < ENGINES; engine++) {
        for (size_t i = 0; i < ATTEMPTS; i++)
            id_ranges_leave(walk.ranges[engine], (struct attempt_id){i + 1});
        id_ranges_free(walk.ranges[engine]);
    }
}

/* --- namespaces: only where the kernel gives some --- */

/* A process inside sees what its ids are outside. */
static void map_is(int fd, const char *wanted)
{
    char out[400] = "", line[64];
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        FILE *map = setns(fd, CLONE_NEWUSER) == 0 ? fopen("/proc/self/uid_map", "re") : NULL;
        unsigned inside, outside, count;
        while (map && fscanf(map, "%u %u %u", &inside, &outside, &count) == 3)
            dprintf(ends[1], "%u %u %u;", inside, outside, count);
        _exit(0);
    }
    close(ends[1]);
    for (ssize_t got; (got = read(ends[0], line, sizeof line - 1)) > 0;) {
        line[got] = '\0';
        strcat(out, line);
    }
    close(ends[0]);
    waitpid(pid, NULL, 0);
    assert_string_equal(out, wanted);
}

static void the_owner_of_a_folder_is_shown_as_another(void **state)
{
    (void)state;
    struct err err = {0};
    if (geteuid() != 0)
        skip();
    struct id_ranges *ranges = ranges_of("one", 1); /* which one it gets is known then */
    joined(ranges, "a", 1);
    int fd = id_ranges_namespace(ranges, "a", &err);
    if (fd == ERR_UNAVAILABLE)
        skip();
    assert_int_equal(id_ranges_namespace(ranges, "a", &err), fd);
    static const struct {
        uint32_t user;
        const char *map;
        bool is_plain; /* root may be root there */
    } cases[] = {
        {1, "1 1376256 1;0 1310720 1;1310720 1376257 1;2 1376258 65534;", false},
        {1000, "1000 1376256 1;0 1310720 1;1 1376257 999;1310720 1377256 1;1001 1377257 64535;",
         false},
        {65535, "65535 1376256 1;0 1310720 1;1 1376257 65534;1310720 1441791 1;", false},
        {70000, "70000 1376256 1;0 1310720 1;1 1376257 65535;", false},
        {FIRST, "1310720 1376256 1;0 1310720 1;1 1376257 65535;", false},
        {70000, "0 1376256 65533;70000 1441789 1;65533 1310720 1;65534 1441790 2;", true},
        {4000000000, "0 1376256 65533;4000000000 1441789 1;65533 1310720 1;65534 1441790 2;", true},
        {1000, "0 1376256 65536;", true}, /* beside a group above */
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct id_owner owner = {cases[i].user, cases[i].user, !cases[i].is_plain};
        fd = id_ranges_view(ranges, "a", &owner, &err);
        assert_true(fd >= 0);
        assert_int_equal(id_ranges_view(ranges, "a", &owner, &err), fd);
        map_is(fd, cases[i].map);
    }
    id_ranges_leave(ranges, (struct attempt_id){1});
    id_ranges_free(ranges);
}

/* In a namespace where nobody has the job's ids no namespace can be theirs, nor any at all. */
static int codes_where_none_can_be(struct id_ranges *ranges)
{
    struct err err = {0};
    if (unshare(CLONE_NEWUSER) < 0)
        return -1;
    const int fd = id_ranges_namespace(ranges, "a", &err);
    const bool is_told = strstr(err.text, "the kernel gives no user namespace") != NULL;
    return fd == ERR_UNAVAILABLE && is_told ? 0 : 1;
}

/* Only what the operator set up is "not supported", which lets tasks have the machine's ids. */
static void what_the_kernel_refuses_later_is_a_limit(void **state)
{
    (void)state;
    int status;
    struct id_ranges *ranges = ranges_of("one", 1);
    joined(ranges, "a", 1);
    const pid_t pid = fork();
    if (pid == 0)
        _exit(codes_where_none_can_be(ranges) & 0xff);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    id_ranges_leave(ranges, (struct attempt_id){1});
    id_ranges_free(ranges);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 0xff) /* no user namespaces here */
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(tasks_of_a_job_share_a_range),
    cmocka_unit_test(one_that_was_given_back_comes_last),
    cmocka_unit_test(a_job_gets_what_it_wishes_when_it_is_free),
    cmocka_unit_test(the_end_of_all_ranges_is_said),
    cmocka_unit_test(what_cannot_be_is_refused),
    cmocka_unit_test(a_restart_keeps_what_runs_and_frees_the_rest),
    cmocka_unit_test(what_runs_is_adopted_in_any_case),
    cmocka_unit_test(engines_beside_each_other_share_none),
    cmocka_unit_test(no_two_jobs_ever_share_an_id),
    cmocka_unit_test(the_owner_of_a_folder_is_shown_as_another),
    cmocka_unit_test(what_the_kernel_refuses_later_is_a_limit),
};
UNIT_FILE(tests, folder_setup, folder_teardown);
