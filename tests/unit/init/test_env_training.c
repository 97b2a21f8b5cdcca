/* The shapes of distributed training: ranks, worlds, and who trains with whom. */
#include "env_world.h"
#include "unit.h"

#include "base/memory.h"
#include "init/env.h"
#include "init/job_file.h"
#include "init/task_file.h"

/* roles given as "name:instances:gpus", the task as role and index */
struct shape {
    const char *roles[3];
    unsigned instances[3], gpus[3], role, index;
    const char *rank, *world, *node_rank, *tf; /* NULL: not set */
};

static void shapes(void **state)
{
    (void)state;
    static const struct shape SHAPES[] = {
        {{"main"}, {1}, {1}, 0, 0, NULL, NULL, NULL, NULL},
        {{"train"}, {3}, {0}, 0, 2, "2", "3", "2", NULL},
        {{"train"}, {3}, {8}, 0, 2, NULL, NULL, "2", NULL}, /* how many processes: not ours to say
                                                             */
        {{"worker", "Master"},
         {2, 1},
         {1, 1},
         0,
         1,
         "2",
         "3",
         "2",
         "{\"cluster\":{\"worker\":[\"a:1\",\"a:2\"],\"master\":[\"a:3\"]},"
         "\"task\":{\"type\":\"worker\",\"index\":1}}"},
        {{"worker", "master"},
         {2, 1},
         {1, 1},
         1,
         0,
         "0",
         "3",
         "0",
         "{\"cluster\":{\"worker\":[\"a:1\",\"a:2\"],\"master\":[\"a:3\"]},"
         "\"task\":{\"type\":\"master\",\"index\":0}}"},
        {{"ps_server", "worker", "evaluator"},
         {1, 1, 1},
         {0, 0, 0},
         2,
         0,
         NULL,
         NULL,
         NULL,
         "{\"cluster\":{\"ps\":[\"a:1\"],\"worker\":[\"a:2\"]},"
         "\"task\":{\"type\":\"evaluator\",\"index\":0}}"},
        {{"worker", "worker2"}, {2, 1}, {0, 0}, 0, 0, "0", "2", "0", NULL}, /* a kind twice */
        {{"workerz", "ps"}, {1, 1}, {0, 0}, 0, 0, NULL, NULL, NULL, NULL},
        {{"workerbee", "ps"}, {1, 1}, {0, 0}, 0, 0, NULL, NULL, NULL, NULL},
        {{"ps"}, {2}, {0}, 0, 0, "0", "2", "0", NULL}, /* nobody trains */
    };
    for (size_t s = 0; s < COUNT_OF(SHAPES); s++) {
        const struct shape *shape = &SHAPES[s];
        struct job_file_role roles[3] = {0};
        struct job_file_task tasks[8] = {0};
        uint16_t ports[8][2];
        struct job_file job = job_of(JOB_FILE_V2);
        struct fixture f;
        job.roles = roles;
        job.tasks = tasks;
        job.role_count = job.task_count = 0;
        for (size_t r = 0; r < 3 && shape->roles[r]; r++) {
            roles[job.role_count++] = (struct job_file_role){.name = shape->roles[r],
                                                             .instances = shape->instances[r],
                                                             .gpu = shape->gpus[r],
                                                             .ports = PORTS,
                                                             .port_count = 2};
            for (unsigned i = 0; i < shape->instances[r]; i++) {
                ports[job.task_count][0] = (uint16_t)(job.task_count + 1);
                ports[job.task_count][1] = 0;
                tasks[job.task_count] = (struct job_file_task){"a", "n", ports[job.task_count]};
                job.task_count++;
            }
        }
        const struct task_file task = {.container = "c",
                                       .command = "x",
                                       .role = (uint16_t)shape->role,
                                       .index = (uint16_t)shape->index};
        begin(&f, &job, &task);
        const char *const PAIRS[][2] = {{"RANK", shape->rank},
                                        {"WORLD_SIZE", shape->world},
                                        {"NODE_RANK", shape->node_rank},
                                        {"TF_CONFIG", shape->tf}};
        for (size_t i = 0; i < COUNT_OF(PAIRS); i++) {
            const char *got = env_get(&f.env, PAIRS[i][0]);
            if (PAIRS[i][1] && got)
                assert_string_equal(got, PAIRS[i][1]);
            else if (PAIRS[i][1] || got)
                fail_msg("shape %zu: %s is %s", s, PAIRS[i][0], got ? got : "not set");
        }
        finish(&f);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(shapes),
};
UNIT_FILE(tests, NULL, NULL);
