#include "engine/engine.h"

#include <assert.h>

#include "base/err.h"

int engine_need(const struct engine *engine, enum engine_capability capability, struct err *err)
{
    static const char *const cannot[] = {
        [ENGINE_CAN_LOG] = "show logs",
        [ENGINE_CAN_FOLLOW] = "follow logs",
        [ENGINE_CAN_STATS] = "say what a task uses",
        [ENGINE_CAN_NODE_STATS] = "say what a machine uses",
        [ENGINE_CAN_SAMPLE_GPUS] = "sample GPUs",
        [ENGINE_CAN_EXACT_DEVICES] = "give a task the GPUs that were chosen",
        [ENGINE_CAN_EXEC] = "start a program in a running task",
        [ENGINE_CAN_RESIZE] = "change the limits of a running task",
        [ENGINE_CAN_CONNECT] = "reach a port of a running task",
        [ENGINE_CAN_TELL_ADDRESSES] = "give each task an address of its own",
    };
    assert((unsigned)capability < ENGINE_CAPABILITIES);
    if (engine->capabilities >> capability & 1)
        return 0;
    return err_fail(err, ERR_UNSUPPORTED, "", "the engine \"%s\" cannot %s",
                    engine->name ? engine->name : engine->ops->name, cannot[capability]);
}
