/* The GPUs of tasks: how they were at the start decides what is the task's own fault at its end.
 * The library that the engine asks is tests/unit/engine/fake_nvml.c. */
#include "machine.h"
#include "unit.h"

#include <pthread.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "engine/local/gpu_watch.h"
#include "engine/local/inventory.h"
#include "engine/local/task.h"

static struct buf told; /* what the engine said of its tasks */

static void on_event(void *context, const struct engine_event *event)
{
    (void)context;
    if (event->kind == ENGINE_NOTE)
        buf_format(&told, "%s: %s\n", event->reason, event->message);
}

/* An engine that has no more than GPUs, and one task on it. */
struct machine {
    struct local_engine local;
    struct task task, *tasks[1];
};

static void machine_init(struct machine *machine, const char *library)
{
    static const char *none[1];
    none[0] = in_folder("cdi-none");
    *machine = (struct machine){.task = {.attempt = {7}, .phase = TASK_RUNNING}};
    machine->tasks[0] = &machine->task;
    struct local_engine *local = &machine->local;
    local->config = (struct engine_local_config){.node_name = "n1",
                                                 .address = "10.0.0.1",
                                                 .cpu = 8,
                                                 .memory_mib = 1000,
                                                 .simulated_gpu_type = "",
                                                 .nvml_path = library,
                                                 .gpu_sample_ms = 5,
                                                 .nvml_list_ms = 60000,
                                                 .topology_path = "",
                                                 .cdi_directories = none,
                                                 .cdi_directory_count = 1};
    local->sink.post = on_event;
    local->tasks = machine->tasks;
    local->task_count = local->task_room = 1;
    pthread_mutex_init(&local->lock, NULL);
    local->inventory = inventory_new(&local->config);
}

static void machine_release(struct machine *machine)
{
    task_gpus_free(machine->task.gpus);
    inventory_free(machine->local.inventory);
    pthread_mutex_destroy(&machine->local.lock);
    buf_release(&told);
}

/* The library says this from now on, and the engine knows it, however busy the machine is. */
static void state_tell(struct machine *machine, const char *text)
{
    state_put(text);
    assert_true(gpu_watch_refresh(inventory_gpus(machine->local.inventory), 60000));
}

static const uint16_t gpus[] = {1, 3};
static const struct container two = {
    .job = "alice~train", .role = "worker", .index = 2, .gpus = gpus, .gpu_count = 2};

static void the_gpus_of_a_task_are_noted(void **state)
{
    (void)state;
    struct machine machine;
    machine_init(&machine, FAKE_NVML);
    state_tell(&machine, "gpu 1 ecc 4\ngpu 1 retired 2\ngpu 3 lost\n");
    task_gpus_note(&machine.local, &machine.task, &two);
    const struct task_gpus *noted = machine.task.gpus;
    assert_non_null(noted);
    assert_string_equal(noted->job, "alice~train");
    assert_string_equal(noted->role, "worker");
    assert_int_equal(noted->index, 2);
    assert_int_equal(noted->count, 2);
    assert_int_equal(noted->items[0].gpu, 1);
    assert_true(noted->items[0].has_errors);
    assert_int_equal(noted->items[0].ecc_errors, 4);
    assert_int_equal(noted->items[0].retired_pages, 2);
    assert_false(noted->items[0].was_lost);
    assert_int_equal(noted->items[1].gpu, 3);
    assert_true(noted->items[1].was_lost && noted->items[1].is_lost_told);
    machine_release(&machine);
}

/* No GPU of the machine is theirs, so none is watched, and none is blamed for their end. */
static void other_tasks_have_none(void **state)
{
    (void)state;
    struct machine machine;
    struct container wanted = two;
    machine_init(&machine, FAKE_NVML);
    wanted.is_gpu_simulated = true;
    task_gpus_note(&machine.local, &machine.task, &wanted);
    assert_null(machine.task.gpus);
    wanted = (struct container){.job = "alice~train", .role = "worker"};
    task_gpus_note(&machine.local, &machine.task, &wanted);
    assert_null(machine.task.gpus);
    machine_release(&machine);

    machine_init(&machine, "libno-such-nvml.so");
    task_gpus_note(&machine.local, &machine.task, &two);
    assert_null(machine.task.gpus);
    machine_release(&machine);
}

/* Only what was counted since the task began is its own; a program that succeeded had no trouble.
 */
static void errors_from_before_are_not_its_own(void **state)
{
    (void)state;
    static const struct {
        const char *after;
        int exit_code;
        bool is_its_own;
    } cases[] = {{"gpu 1 ecc 4\ngpu 1 retired 2\n", 1, false},
                 {"gpu 1 ecc 5\ngpu 1 retired 2\n", 1, true},
                 {"gpu 1 ecc 4\ngpu 1 retired 3\n", 1, true},
                 {"gpu 1 ecc 5\ngpu 1 retired 2\n", 0, false},
                 {"gpu 1 ecc 1\n", 1, false}, /* counted anew: the driver was loaded again */
                 {"gpu 0 ecc 5\ngpu 2 ecc 5\ngpu 1 ecc 4\ngpu 1 retired 2\n", 1, false}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct machine machine;
        struct exit_report report = {.exit_code = cases[i].exit_code};
        machine_init(&machine, FAKE_NVML);
        state_tell(&machine, "gpu 1 ecc 4\ngpu 1 retired 2\n");
        task_gpus_note(&machine.local, &machine.task, &two);
        state_tell(&machine, cases[i].after);
        task_gpus_judge(&machine.local, &machine.task, &report);
        assert_int_equal(report.has_gpu_ecc_error, cases[i].is_its_own);
        assert_int_equal(strstr(buf_cstr(&told), "GpuMemoryErrors: GPU 1 (") != NULL,
                         cases[i].is_its_own);
        assert_false(report.has_gpu_lost);
        machine_release(&machine);
    }
}

/* A GPU that is lost is told once, and is the end of a task only where it was there before. */
static void a_lost_gpu_is_told_once(void **state)
{
    (void)state;
    for (int was_lost = 0; was_lost < 2; was_lost++) {
        struct machine machine;
        struct exit_report report = {.exit_code = 1};
        machine_init(&machine, FAKE_NVML);
        state_tell(&machine, was_lost ? "gpu 3 lost\n" : "");
        task_gpus_note(&machine.local, &machine.task, &two);
        state_tell(&machine, "gpu 3 lost\n");
        task_gpus_judge(&machine.local, &machine.task, &report);
        gpus_lost_tell(&machine.local);
        assert_int_equal(report.has_gpu_lost, !was_lost);
        const char *first = strstr(buf_cstr(&told), "GpuLost: GPU 3 (");
        assert_int_equal(first != NULL, !was_lost);
        assert_true(!first || !strstr(first + 1, "GpuLost"));
        machine_release(&machine);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(the_gpus_of_a_task_are_noted, gpus_well),
    cmocka_unit_test_setup(other_tasks_have_none, gpus_well),
    cmocka_unit_test_setup(errors_from_before_are_not_its_own, gpus_well),
    cmocka_unit_test_setup(a_lost_gpu_is_told_once, gpus_well),
};
UNIT_FILE(tests, gpus_setup, folder_teardown);
