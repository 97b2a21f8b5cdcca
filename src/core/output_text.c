#include "core/output_text.h"

#include "base/buf.h"
#include "core/output.h"
#include <assert.h>

static void write_time(struct buf *out, const char *label, int64_t at_ms, int64_t origin_ms)
{
    if (at_ms)
        buf_format(out, " %s=%lld.%03lld", label, (long long)(at_ms - origin_ms) / 1000,
                   (long long)(at_ms - origin_ms) % 1000);
}

static void write_completion(struct buf *out, const struct completion *completion)
{
    if (completion->phrase[0])
        buf_format(out, " end=%d/%s/%u \"%s\"", completion->code, completion->phrase,
                   completion->attributes, completion->diagnostics);
}

static void write_job(struct buf *out, const struct job_record *job, int64_t origin_ms)
{
    buf_format(out, "job %u.%u %s~%s vc=%s prio=%d %s%s tasks=%u roles=%u gpus=%llu", job->id.v,
               job->attempt, job->user, job->name, job->virtual_cluster, job->priority,
               life_state_name(job->state), job->is_stop_requested ? " stop" : "", job->task_count,
               job->role_count, (unsigned long long)job->gpu_count);
    if (job->submission)
        buf_string(out, " new");
    if (job->retries_user || job->retries_platform || job->retries_resource)
        buf_format(out, " retries=%u/%u/%u", job->retries_user, job->retries_platform,
                   job->retries_resource);
    write_time(out, "submitted", job->submitted_ms, origin_ms);
    write_time(out, "created", job->attempt_created_ms, origin_ms);
    write_time(out, "launched", job->attempt_launched_ms, origin_ms);
    write_time(out, "completed", job->attempt_completed_ms, origin_ms);
    write_time(out, "first", job->launched_ms, origin_ms);
    write_time(out, "final", job->completed_ms, origin_ms);
    write_time(out, "retry", job->retry_at_ms, origin_ms);
    write_completion(out, &job->completion);
    if (*job->trigger)
        buf_format(out, " trigger=%d,%d \"%s\"", job->trigger_role, job->trigger_index,
                   job->trigger);
    if (*job->reason)
        buf_format(out, " reason=\"%s\"", job->reason);
}

static void write_task(struct buf *out, const struct task_record *task, int64_t origin_ms)
{
    buf_format(out, "task %u.%u %s-%u", task->job.v, task->job_attempt, task->role_name,
               task->task.index);
    if (task->is_removed) {
        buf_string(out, " removed");
        return;
    }
    buf_format(out, " %s%s%s attempt=%llu try=%u", life_state_name(task->state),
               task->is_deletion_pending ? " deleting" : "", task->is_held ? " held" : "",
               (unsigned long long)task->attempt.v, task->task_attempt);
    if (task->retries)
        buf_format(out, " retries=%u/%u", task->retries, task->accountable_retries);
    if (*task->node)
        buf_format(out, " node=%s(%s)", task->node, task->address);
    for (size_t i = 0; i < task->gpu_count; i++)
        buf_format(out, "%s%u", i ? "," : " gpus=", task->gpus[i]);
    for (size_t i = 0; i < task->port_count; i++)
        buf_format(out, "%s%s:%u+%u", i ? "," : " ports=", task->ports[i].label,
                   task->ports[i].first, task->ports[i].count);
    write_time(out, "created", task->created_ms, origin_ms);
    write_time(out, "launched", task->launched_ms, origin_ms);
    write_time(out, "completed", task->completed_ms, origin_ms);
    write_time(out, "from", task->attempt_created_ms, origin_ms);
    write_time(out, "ran", task->attempt_launched_ms, origin_ms);
    write_time(out, "to", task->attempt_completed_ms, origin_ms);
    write_completion(out, &task->completion);
}

static void write_story(struct buf *out, const struct story_record *story)
{
    assert(story->reason && story->message);
    buf_format(out, "story %u", story->job.v);
    if (story->role >= 0)
        buf_format(out, " %d,%d", story->role, story->index);
    buf_format(out, " %s%s: %s", story->is_warning ? "!" : "", story->reason, story->message);
}

static void write_node(struct buf *out, const struct node_record *node)
{
    assert(node->facts.name);
    buf_format(out, "node %u %s(%s) cpu=%u memory=%llu gpus=%u%s%s%s%s%s", node->id.v,
               node->facts.name, node->facts.address, node->facts.cpu,
               (unsigned long long)node->facts.memory_mib, node->facts.gpu_count,
               *node->facts.gpu_type ? "x" : "", node->facts.gpu_type,
               node->facts.is_healthy ? " healthy" : " bad", node->is_cordoned ? " cordoned" : "",
               node->is_lost ? " lost" : "");
    if (node->blame > 0)
        buf_format(out, " blame=%.3f", node->blame);
    if (node->refusals > 0)
        buf_format(out, " refusals=%u", node->refusals);
    if (*node->facts.reason)
        buf_format(out, " \"%s\"", node->facts.reason);
    if (node->closing.is_closed)
        buf_format(out, " closed by %s \"%s\"", node->closing.by, node->closing.why);
}

static void write_cluster(struct buf *out, const struct cluster_record *cluster)
{
    assert(cluster->name);
    buf_format(out, "virtual cluster %s", cluster->name);
    if (cluster->closing.is_closed)
        buf_format(out, " closed by %s \"%s\"", cluster->closing.by, cluster->closing.why);
    else
        buf_string(out, " open");
}

static void write_record(struct buf *out, const struct record *record, int64_t origin_ms)
{
    switch (record->kind) {
    case RECORD_JOB:
        write_job(out, &record->job, origin_ms);
        break;
    case RECORD_TASK:
        write_task(out, &record->task, origin_ms);
        break;
    case RECORD_STORY:
        write_story(out, &record->story);
        break;
    case RECORD_NODE:
        write_node(out, &record->node);
        break;
    case RECORD_CLUSTER:
        write_cluster(out, &record->cluster);
        break;
    case RECORD_JOB_DELETED:
        buf_format(out, "deleted %u", record->deleted.v);
        break;
    }
}

static void write_command(struct buf *out, const struct command *command, int64_t origin_ms)
{
    static const char *const names[] = {"create", "kill", "forget", "wake"};
    buf_string(out, names[command->kind]);
    if (command->kind == COMMAND_WAKE) {
        write_time(out, "at", command->at_ms, origin_ms);
        return;
    }
    buf_format(out, " %llu job=%u task=%u,%u", (unsigned long long)command->attempt.v,
               command->job.v, command->task.role, command->task.index);
    if (*command->node)
        buf_format(out, " node=%s", command->node);
    if (command->kind == COMMAND_KILL)
        buf_format(out, " grace=%u%s \"%s\"", command->grace_ms, command->is_held ? " held" : "",
                   command->reason);
}

void output_write(const struct output *output, int64_t origin_ms, struct buf *out)
{
    for (size_t i = 0; i < output->trace.count; i++)
        buf_format(out, "  # %s\n", output->trace.items[i]);
    for (size_t i = 0; i < output->records.count; i++) {
        buf_string(out, "  ");
        write_record(out, &output->records.items[i], origin_ms);
        buf_char(out, '\n');
    }
    for (size_t i = 0; i < output->commands.count; i++) {
        buf_string(out, "  > ");
        write_command(out, &output->commands.items[i], origin_ms);
        buf_char(out, '\n');
    }
    for (size_t i = 0; i < output->answers.count; i++) {
        const struct answer *answer = &output->answers.items[i];
        buf_format(out, "  < %llu: %d job=%u %s %s\n", (unsigned long long)answer->request,
                   answer->code, answer->job.v, answer->path, answer->text);
    }
}
