/* Ends of processes: grace, those that ignore it, what they leave behind, stacks of what hangs. */
#include "run.h"
#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/memory.h"
#include "init/exit_file.h"

/* The shell dies of SIGTERM at once; what it started needs time to save its work, and has it. */
static void checkpoint(void **state)
{
    (void)state;
    struct world w;
    world_init(&w,
               "(trap 'read -r r < $SKEP_STOP_REASON_FILE; echo $r; sleep 0.3; echo saved; exit' "
               "TERM; echo > run/ready; while :; do sleep 0.02; done) & wait");
    pid_t pid = world_start(&w);
    ready_await(&w);
    struct reason_file reason = {"preempted", RUN_LIMIT_MS};
    struct buf bytes = BUF_INIT;
    reason_file_write(&reason, &bytes);
    write_whole(path_in(&w, "run/reason"), bytes.at, bytes.length);
    buf_release(&bytes);
    kill(pid, SIGTERM);
    world_wait(&w, pid);
    end_is(&w, EXIT_STAGE_USER, 143, 15);
    log_is(&w, "stdout", "reason preempted\nsaved\n");
    folder_remove(w.root);
}

/* Who ignores SIGTERM is killed before the grace time ends, and the report is still written. */
static void stubborn(void **state)
{
    (void)state;
    struct world w;
    world_init(&w, "trap '' TERM; echo > run/ready; while :; do sleep 0.02; done");
    pid_t pid = world_start(&w);
    ready_await(&w);
    write_whole(path_in(&w, "run/reason"), "reason stopped\ngrace_ms 400\n", 29);
    kill(pid, SIGTERM);
    world_wait(&w, pid);
    end_is(&w, EXIT_STAGE_USER, 137, 9);
    folder_remove(w.root);
}

/* Escaped by double fork and setsid, ignoring SIGTERM, holding the pipes: gone all the same. */
static void leftovers(void **state)
{
    (void)state;
    struct world w;
    struct buf bytes = BUF_INIT;
    world_init(
        &w, "(setsid sh -c 'trap \"\" TERM; echo $$ > run/pid; while :; do sleep 0.05; done' &)\n"
            "until [ -s run/pid ]; do sleep 0.01; done; echo done");
    world_run(&w);
    end_is(&w, EXIT_STAGE_USER, 0, 0);
    log_is(&w, "stdout", "done\n");
    read_whole(path_in(&w, "run/pid"), &bytes);
    assert_int_equal(kill((pid_t)atoi(buf_cstr(&bytes)), 0), -1);
    assert_int_equal(errno, ESRCH);
    buf_release(&bytes);
    folder_remove(w.root);
}

/* hung: a Python program shows its stacks before it ends. SIGTERM, which comes a second later,
 * does not end one that needs longer for it. */
static void stack_dump(void **state)
{
    (void)state;
    struct world w;
    if (access("/usr/bin/python3", X_OK) != 0)
        skip();
    world_init(&w, "trap '' TERM\n"
                   "python3 -c 'import time\ndef stuck():\n    open(\"run/ready\",\"w\").close()\n"
                   "    time.sleep(1000)\nstuck()'");
    pid_t pid = world_start(&w);
    ready_await(&w);
    write_whole(path_in(&w, "run/reason"), "reason hung\ngrace_ms 120000\n", 29);
    kill(pid, SIGTERM);
    world_wait(&w, pid);
    assert_int_equal(w.end.code, 134);
    log_has(&w, "stderr", "in stuck");
    log_has(&w, "runtime", "stack dump: pid");
    folder_remove(w.root);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(checkpoint),
    cmocka_unit_test(stubborn),
    cmocka_unit_test(leftovers),
    cmocka_unit_test(stack_dump),
};
UNIT_FILE(tests, run_setup, NULL);
