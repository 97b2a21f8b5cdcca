#include "core/output.h"

#include "base/memory.h"

void output_init(struct output *output)
{
    *output = (struct output){0};
    arena_init(&output->arena);
}

void output_clear(struct output *output)
{
    arena_clear(&output->arena);
    output->records.count = output->commands.count = 0;
    output->answers.count = output->trace.count = 0;
}

void output_release(struct output *output)
{
    arena_release(&output->arena);
    ARRAY_FREE(&output->records);
    ARRAY_FREE(&output->commands);
    ARRAY_FREE(&output->answers);
    ARRAY_FREE(&output->trace);
}
