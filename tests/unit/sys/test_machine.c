/* What a machine gives and lacks is told in whole sentences, and looking leaves nothing behind. */
#include "folder.h"
#include "unit.h"

#include <dirent.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "sys/cleanup.h"
#include "sys/machine.h"

static const struct machine_finding *finding_of(const struct machine_finding *findings,
                                                size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(findings[i].name, name) == 0)
            return &findings[i];
    fail_msg("nothing is said of %s", name);
    abort();
}

static void test_findings(void **state)
{
    (void)state;
    static const char *const names[] = {
        "kernel",       "control groups", "namespaces",      "seccomp",      "overlay",
        "runtime",      "conmon",         "idmapped mounts", "device files", "user ids",
        "job networks", "firewall",       "project quotas",  "disk weights", "processes",
        "inotify",      "swap",           "metadata layers"};
    struct machine_finding findings[MACHINE_FINDINGS_MAX];
    const size_t count = machine_check(in_folder(""), findings);
    assert_in_range(count, COUNT_OF(names), MACHINE_FINDINGS_MAX);
    for (size_t i = 0; i < COUNT_OF(names); i++)
        finding_of(findings, count, names[i]);
    for (size_t i = 0; i < count; i++) {
        assert_in_range(findings[i].state, MACHINE_GOOD, MACHINE_UNKNOWN);
        assert_true(findings[i].found[0]);
        assert_int_equal(findings[i].state == MACHINE_GOOD, findings[i].meaning[0] == 0);
        assert_ptr_equal(finding_of(findings, count, findings[i].name), &findings[i]);
    }
    /* who runs this runs a kernel that runs this */
    assert_int_equal(finding_of(findings, count, "namespaces")->state, MACHINE_GOOD);
    if (geteuid() != 0)
        assert_int_equal(finding_of(findings, count, "overlay")->state, MACHINE_UNKNOWN);
    else
        assert_int_not_equal(finding_of(findings, count, "overlay")->state, MACHINE_UNKNOWN);
    cleanup_dir DIR *dir = opendir(in_folder(""));
    for (struct dirent *entry; (entry = readdir(dir));)
        assert_true(entry->d_name[0] == '.' && strlen(entry->d_name) <= 2);
}

static void test_directory(void **state)
{
    (void)state;
    struct machine_finding findings[MACHINE_FINDINGS_MAX];
    folder_put("file", "");
    size_t count = machine_check(in_folder("not/there/yet"), findings);
    const char *found = finding_of(findings, count, "project quotas")->found;
    const char *folder = in_folder("");
    assert_non_null(strstr(found, folder));
    assert_null(strstr(found, "yet"));
    count = machine_check(in_folder("file"), findings);
    assert_null(strstr(finding_of(findings, count, "project quotas")->found, "file"));
    count = machine_check("relative", findings);
    found = finding_of(findings, count, "project quotas")->found;
    assert_string_equal(strstr(found, " in "), " in /");
}

enum { MASKED_LESS, MASKED_GOOD, MASKED_NOT };

/* What is said of user ids where a part of /proc is hidden, as in a container. */
static int ids_where_proc_is_masked(void)
{
    struct machine_finding findings[MACHINE_FINDINGS_MAX];
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("/dev/null", "/proc/version", NULL, MS_BIND, NULL) < 0)
        return MASKED_NOT;
    const size_t count = machine_check(in_folder(""), findings);
    const struct machine_finding *finding = finding_of(findings, count, "idmapped mounts");
    return finding->state == MACHINE_LESS && strstr(finding->found, "/proc") ? MASKED_LESS
                                                                             : MASKED_GOOD;
}

static void test_masked_proc(void **state)
{
    (void)state;
    int status;
    struct machine_finding findings[MACHINE_FINDINGS_MAX];
    const size_t count = machine_check(in_folder(""), findings);
    if (finding_of(findings, count, "idmapped mounts")->state != MACHINE_GOOD)
        skip();
    const pid_t pid = fork();
    if (pid == 0)
        _exit(ids_where_proc_is_masked());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == MASKED_NOT)
        skip();
    assert_int_equal(WEXITSTATUS(status), MASKED_LESS);
}

static void test_kernel(void **state)
{
    (void)state;
    assert_int_equal(machine_kernel_number("6.1.0-21-amd64"), 601);
    assert_int_equal(machine_kernel_number("5.14"), 514);
    assert_int_equal(machine_kernel_number("5.6-rc1"), 506);
    assert_int_equal(machine_kernel_number("5"), 0);
    assert_int_equal(machine_kernel_number(""), 0);
    assert_int_equal(machine_kernel_number("-1.2"), 0);
    assert_int_equal(machine_kernel_number("1000.2"), 0);
    assert_int_equal(machine_kernel_number("1.200"), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_findings),
    cmocka_unit_test(test_directory),
    cmocka_unit_test(test_masked_proc),
    cmocka_unit_test(test_kernel),
};
UNIT_FILE(tests, folder_setup, folder_teardown);
