#include "init/task_file.h"

#include <assert.h>

#include "base/arena.h"
#include "base/err.h"
#include "init/codec.h"

#define MAGIC "skeptask"
enum { VERSION = 3 };

void task_file_write(const struct task_file *task, struct buf *out)
{
    assert(task->gpu_count <= TASK_FILE_GPUS_MAX);
    assert(task->command && task->command[0]);
    size_t begin = codec_begin(out, MAGIC, VERSION);
    buf_put_u64(out, task->attempt_id);
    codec_put_string(out, task->container);
    buf_put_u32(out, task->role);
    buf_put_u32(out, task->index);
    buf_put_u32(out, task->task_attempt);
    buf_put_u32(out, task->retries);
    buf_put_u32(out, (uint32_t)task->gpu_count);
    for (size_t i = 0; i < task->gpu_count; i++)
        buf_put_u32(out, task->gpus[i]);
    buf_put_u8(out, task->is_gpu_simulated);
    codec_put_string(out, task->pre_command);
    codec_put_string(out, task->command);
    codec_put_string(out, task->post_command);
    codec_put_string(out, task->ssh_private_key);
    codec_put_string(out, task->ssh_public_key);
    codec_put_string(out, task->ssh_authorized_keys);
    buf_put_u8(out, task->has_ssh_barrier);
    buf_put_u32(out, task->ssh_barrier_timeout_s);
    codec_put_string(out, task->barrier_url);
    codec_put_string(out, task->barrier_token);
    buf_put_u8(out, task->has_start_barrier);
    buf_put_u32(out, task->barrier_timeout_s);
    buf_put_u8(out, task->reports_ssh);
    codec_put_string(out, task->code_path);
    buf_put_u64(out, task->segment_bytes);
    codec_end(out, begin);
}

static uint16_t number_16(struct cursor *in)
{
    uint32_t value = cursor_u32(in);
    if (value > UINT16_MAX)
        in->is_bad = true;
    return (uint16_t)value;
}

int task_file_read(struct text bytes, struct arena *arena, struct task_file *task, struct err *err)
{
    struct cursor in;
    *task = (struct task_file){0};
    int code = codec_open(bytes, MAGIC, VERSION, TASK_FILE_BYTES_MAX, &in, err);
    if (code < 0)
        return code;
    task->attempt_id = cursor_u64(&in);
    task->container = codec_string(&in, arena);
    task->role = number_16(&in);
    task->index = number_16(&in);
    task->task_attempt = cursor_u32(&in);
    task->retries = cursor_u32(&in);
    task->gpu_count = codec_count(&in, TASK_FILE_GPUS_MAX, 4);
    uint16_t *gpus = ARENA_ARRAY(arena, uint16_t, task->gpu_count);
    for (size_t i = 0; i < task->gpu_count; i++)
        gpus[i] = number_16(&in);
    task->gpus = gpus;
    task->is_gpu_simulated = cursor_u8(&in) != 0;
    task->pre_command = codec_string(&in, arena);
    task->command = codec_string(&in, arena);
    task->post_command = codec_string(&in, arena);
    task->ssh_private_key = codec_string(&in, arena);
    task->ssh_public_key = codec_string(&in, arena);
    task->ssh_authorized_keys = codec_string(&in, arena);
    task->has_ssh_barrier = cursor_u8(&in) != 0;
    task->ssh_barrier_timeout_s = cursor_u32(&in);
    task->barrier_url = codec_string(&in, arena);
    task->barrier_token = codec_string(&in, arena);
    task->has_start_barrier = cursor_u8(&in) != 0;
    task->barrier_timeout_s = cursor_u32(&in);
    task->reports_ssh = cursor_u8(&in) != 0;
    task->code_path = codec_string(&in, arena);
    task->segment_bytes = cursor_u64(&in);
    if (in.is_bad || in.at != in.end || !task->command[0])
        return err_fail(err, ERR_CORRUPT, "", "the task file is damaged");
    return 0;
}
