#include "spec/fields.h"

#include "base/memory.h"
#include "spec/spec.h"

#define SHAPE(list, what)                                                                          \
    {                                                                                              \
        .fields = (list), .count = COUNT_OF(list), .unknown = (what)                               \
    }
#define STRING(least, most) .kind = FIELD_STRING, .min = (least), .max = (most)
#define NAME                STRING(1, SPEC_NAME_MAX)
#define URI                 STRING(1, SPEC_URI_MAX)
#define INT(least, most)    .kind = FIELD_INT, .min = (least), .max = (most)
#define STRINGS(least)      .kind = FIELD_STRINGS, .min = (least), .max = SPEC_LIST_MAX
#define LINES(least)        .kind = FIELD_STRINGS, .min = (least), .max = SPEC_LINES_MAX
#define MAPS(least, what)                                                                          \
    .kind = FIELD_MAP_LIST, .shape = (what), .min = (least), .max = SPEC_LIST_MAX
#define BOOL .kind = FIELD_BOOL

static const struct shape_pattern job_name = {"a-zA-Z0-9_\\-", "a-zA-Z0-9_\\-",
                                              "letters, digits, _ and -"};
static const struct shape_pattern identifier = {
    "a-zA-Z_", "a-zA-Z0-9_", "letters, digits and _, and must not begin with a digit"};
static const struct shape_pattern v1_job_name = {"A-Za-z0-9\\-._~", "A-Za-z0-9\\-._~",
                                                 "letters, digits, -, ., _ and ~"};
static const struct shape_pattern v1_role_name = {"A-Za-z0-9._~\\-", "A-Za-z0-9._~\\-",
                                                  "letters, digits, ., _ and ~"};
static const struct shape_pattern v1_label = {"A-Za-z0-9._~", "A-Za-z0-9._~",
                                              "letters, digits, ., _ and ~"};

static const char *const two[] = {"2", NULL};
static const char *const job[] = {"job", NULL};
static const char *const priorities[] = {"oppo", "test", "prod", "crit", NULL};
static const char *const failure_policies[] = {"fail", "ignore", NULL};
static const char *const ssh_types[] = {"custom", "none", NULL};
static const char *const events[] = {"taskStarts", "taskSucceeds", NULL};

/* prerequisites */

static const struct field auth_fields[] = {
    {.name = "username", STRING(0, SPEC_URI_MAX), .help = "User name at the registry"},
    {.name = "password", STRING(0, SPEC_URI_MAX), .help = "Password, best as <% $secrets.x %>"},
    {.name = "registryuri", STRING(0, SPEC_URI_MAX), .help = "Registry; default Docker Hub"},
};
static const struct shape auth = SHAPE(auth_fields, UNKNOWN_WARN);

#define COMMON_FIELDS                                                                              \
    {.name = "name", .flags = FIELD_REQUIRED, NAME, .help = "Name that roles refer to"},           \
        {.name = "type", .flags = FIELD_REQUIRED, NAME, .help = "Kind of the prerequisite"},       \
        {.name = "protocolVersion", .kind = FIELD_LABEL, .help = "Informational"},                 \
        {.name = "version",                                                                        \
         .kind = FIELD_LABEL,                                                                      \
         .flags = FIELD_NULLABLE,                                                                  \
         .help = "Informational"},                                                                 \
        {.name = "contributor",                                                                    \
         .flags = FIELD_NULLABLE,                                                                  \
         STRING(0, SPEC_DESCRIPTION_MAX),                                                          \
         .help = "Informational"},                                                                 \
    {                                                                                              \
        .name = "description", STRING(0, SPEC_DESCRIPTION_MAX), .help = "Informational"            \
    }
#define PLUGIN_FIELDS                                                                              \
    {.name = "plugin", NAME, .help = "Runtime plugin that provides it"},                           \
    {                                                                                              \
        .name = "require", STRINGS(0), .help = "Prerequisites that come before this one"           \
    }

static const struct field image_fields[] = {
    COMMON_FIELDS,
    {.name = "uri", .flags = FIELD_REQUIRED, URI, .help = "Image, as docker pull takes it"},
    {.name = "auth", .kind = FIELD_MAP, .shape = &auth, .help = "Login at the registry"},
};
static const struct field script_fields[] = {
    COMMON_FIELDS,
    PLUGIN_FIELDS,
    {.name = "uri", STRING(0, SPEC_URI_MAX), .help = "Where it is, for <% $script.uri %>"},
};
static const struct field data_fields[] = {
    COMMON_FIELDS,
    PLUGIN_FIELDS,
    {.name = "uri", STRINGS(0), .help = "Where it is, for <% $data.uri[0] %>"},
};
static const struct shape image = SHAPE(image_fields, UNKNOWN_ERROR);
static const struct shape script = SHAPE(script_fields, UNKNOWN_FREE);
static const struct shape data = SHAPE(data_fields, UNKNOWN_FREE);
static const struct shape_variant prerequisites[] = {
    {"dockerimage", &image}, {"script", &script}, {"output", &script}, {"data", &data}};

/* runtime plugins */

static const struct field userssh_fields[] = {
    {.name = "type", .kind = FIELD_CHOICE, .choices = ssh_types, .help = "Kind of key"},
    {.name = "value", STRING(0, SPEC_DESCRIPTION_MAX), .help = "Public key to let in"},
};
static const struct shape userssh = SHAPE(userssh_fields, UNKNOWN_WARN);
static const struct field ssh_fields[] = {
    {.name = "jobssh", BOOL, .help = "ssh between the tasks of the job"},
    {.name = "sshbarrier", BOOL, .help = "Wait until every task answers on ssh"},
    {.name = "sshbarrierTimeout", INT(1, 100000), .help = "Minutes to wait; default 30"},
    {.name = "userssh",
     .flags = FIELD_OR_TEXT,
     .kind = FIELD_MAP,
     .shape = &userssh,
     .help = "Key of a person to let in; before 1.0 the key itself"},
};
static const struct field callback_fields[] = {
    {.name = "event", .flags = FIELD_REQUIRED, .kind = FIELD_CHOICE, .choices = events},
    {.name = "commands", .flags = FIELD_REQUIRED, LINES(0), .help = "Lines of shell"},
};
static const struct shape callback = SHAPE(callback_fields, UNKNOWN_WARN);
static const struct field cmd_fields[] = {
    {.name = "preCommands", LINES(0), .help = "Run before the user's command"},
    {.name = "postCommands", LINES(0), .help = "Run after the user's command succeeded"},
    {.name = "callbacks", MAPS(0, &callback), .help = "Commands at events, instead"},
};
static const struct field git_fields[] = {
    {.name = "repo_uri", .flags = FIELD_REQUIRED, URI, .help = "Repository to clone"},
    {.name = "options", STRINGS(0), .help = "Options of git clone"},
    {.name = "clone_dir", URI, .help = "Directory to clone to; must be empty"},
};
static const struct field tensorboard_fields[] = {
    {.name = "port",
     INT(1, 65535),
     .help = "Port to listen on; default: the role's of the label tensorboard, else 6006"},
    {.name = "logdir", .kind = FIELD_FREE_MAP, .help = "Names to directories"},
};
static const struct field teamwise_fields[] = {
    {.name = "storageConfigNames", STRINGS(0), .help = "Storages to mount (old form)"},
};
static const struct shape ssh = SHAPE(ssh_fields, UNKNOWN_WARN);
static const struct shape cmd = SHAPE(cmd_fields, UNKNOWN_WARN);
static const struct shape git = SHAPE(git_fields, UNKNOWN_WARN);
static const struct shape tensorboard = SHAPE(tensorboard_fields, UNKNOWN_WARN);
static const struct shape teamwise = SHAPE(teamwise_fields, UNKNOWN_WARN);

#define PLUGIN_SHAPE(id, parameter_shape)                                                          \
    static const struct field id##_plugin_fields[] = {                                             \
        {.name = "plugin", .flags = FIELD_REQUIRED, NAME, .help = "Name of the plugin"},           \
        {.name = "parameters",                                                                     \
         .flags = FIELD_NULLABLE,                                                                  \
         .kind = FIELD_MAP,                                                                        \
         .shape = (parameter_shape),                                                               \
         .help = "What the plugin takes"},                                                         \
        {.name = "failurePolicy",                                                                  \
         .kind = FIELD_CHOICE,                                                                     \
         .choices = failure_policies,                                                              \
         .help = "Whether its failure fails the task; default fail"},                              \
        {.name = "taskroles", STRINGS(0), .help = "Roles that have it; default all"},              \
        {.name = "taskRoles", STRINGS(0), .help = "The same as taskroles"},                        \
    };                                                                                             \
    static const struct shape id##_plugin = SHAPE(id##_plugin_fields, UNKNOWN_WARN)

PLUGIN_SHAPE(ssh, &ssh);
PLUGIN_SHAPE(cmd, &cmd);
PLUGIN_SHAPE(git, &git);
PLUGIN_SHAPE(tensorboard, &tensorboard);
PLUGIN_SHAPE(teamwise, &teamwise);

static const struct shape_variant plugins[] = {{"ssh", &ssh_plugin},
                                               {"cmd", &cmd_plugin},
                                               {"git", &git_plugin},
                                               {"tensorboard", &tensorboard_plugin},
                                               {"teamwise_storage", &teamwise_plugin}};
static const struct shape_variant plugin_parameters[] = {{"ssh", &ssh},
                                                         {"cmd", &cmd},
                                                         {"git", &git},
                                                         {"tensorboard", &tensorboard},
                                                         {"teamwise_storage", &teamwise}};

const struct shape *spec_plugin_shape(struct text name)
{
    for (size_t i = 0; i < COUNT_OF(plugin_parameters); i++)
        if (text_is(name, plugin_parameters[i].tag))
            return plugin_parameters[i].shape;
    return NULL;
}

void spec_plugin_offer(struct near *near, struct text name)
{
    for (size_t i = 0; i < COUNT_OF(plugin_parameters); i++)
        near_offer(near, name, text_of(plugin_parameters[i].tag));
}

/* extras */

static const struct field storage_fields[] = {
    {.name = "name", .flags = FIELD_REQUIRED, NAME, .help = "Name of the storage"},
    {.name = "mountPath", URI, .help = "Where to mount it; default /mnt/NAME"},
};
static const struct shape storage = SHAPE(storage_fields, UNKNOWN_WARN);
static const struct field hived_role_fields[] = {
    {.name = "skuType",
     .flags = FIELD_NULLABLE,
     STRING(0, SPEC_NAME_MAX),
     .help = "Type of device"},
    {.name = "skuNum", .flags = FIELD_NULLABLE, INT(0, SPEC_GPU_MAX), .help = "Computed; ignored"},
    {.name = "pinnedCellId",
     .flags = FIELD_NULLABLE,
     STRING(0, SPEC_NAME_MAX),
     .help = "Pinned cell of the virtual cluster"},
    {.name = "gpuType",
     .flags = FIELD_NULLABLE,
     STRING(0, SPEC_NAME_MAX),
     .help = "What skuType was called before 1.0"},
    {.name = "gpuNumber", .flags = FIELD_NULLABLE, INT(0, SPEC_GPU_MAX), .help = "As skuNum"},
    {.name = "reservationId",
     .flags = FIELD_NULLABLE,
     STRING(0, SPEC_NAME_MAX),
     .help = "What pinnedCellId was called before 1.0"},
    {.name = "affinityGroupName",
     .flags = FIELD_NULLABLE,
     STRING(0, SPEC_NAME_MAX),
     .help = "Roles of one group are placed together"},
    {.name = "withinOneCell",
     .flags = FIELD_NULLABLE,
     STRING(0, SPEC_NAME_MAX),
     .help = "Type of a cell that must hold all instances (Skep)"},
};
static const struct shape hived_role = SHAPE(hived_role_fields, UNKNOWN_WARN);
static const struct field hived_fields[] = {
    {.name = "jobPriorityClass",
     .flags = FIELD_NULLABLE,
     .kind = FIELD_CHOICE,
     .choices = priorities,
     .help = "Priority; default test"},
    {.name = "taskRoles",
     .flags = FIELD_NULLABLE,
     .kind = FIELD_MAP_MAP,
     .max = SPEC_ROLES_MAX,
     .shape = &hived_role,
     .help = "Placement of each role"},
    {.name = "gangReleaseEnable", .flags = FIELD_NULLABLE, BOOL, .help = "Accepted, has no effect"},
    {.name = "lazyPreemptionEnable",
     .flags = FIELD_NULLABLE,
     BOOL,
     .help = "May lose its guarantee instead of its life"},
    {.name = "withinOneCell",
     .flags = FIELD_NULLABLE,
     STRING(0, SPEC_NAME_MAX),
     .help = "Type of a cell that must hold the whole gang (Skep)"},
    {.name = "ignoreK8sSuggestedNodes", .flags = FIELD_NULLABLE, BOOL, .help = "Default true"},
};
static const struct shape hived = SHAPE(hived_fields, UNKNOWN_WARN);
static const struct field notification_fields[] = {
    {.name = "running", BOOL}, {.name = "succeeded", BOOL}, {.name = "stopped", BOOL},
    {.name = "failed", BOOL},  {.name = "retried", BOOL},
};
static const struct shape notification = SHAPE(notification_fields, UNKNOWN_WARN);
static const struct field hang_fields[] = {
    {.name = "afterSeconds", INT(1, INT32_MAX), .help = "Silence after which a task is hung"},
    {.name = "retry", BOOL, .help = "Write the stacks down, then retry"},
};
static const struct shape hang = SHAPE(hang_fields, UNKNOWN_ERROR);

#define SKEP_FIELDS                                                                                \
    {.name = "jobStatusChangeNotification",                                                        \
     .kind = FIELD_MAP,                                                                            \
     .shape = &notification,                                                                       \
     .help = "States that send a message"},                                                        \
        {.name = "timeLimitSeconds",                                                               \
         INT(1, INT32_MAX),                                                                        \
         .help = "The job is stopped after running that long (Skep)"},                             \
        {.name = "debug", BOOL, .help = "Keep containers after a failure (Skep)"},                 \
    {                                                                                              \
        .name = "hang", .kind = FIELD_MAP, .shape = &hang,                                         \
        .help = "Detection of hung tasks (Skep)"                                                   \
    }

static const struct field extras_fields[] = {
    {.name = "submitFrom",
     .flags = FIELD_NULLABLE,
     STRING(0, SPEC_NAME_MAX),
     .help = "Tag of the submitting tool"},
    {.name = "gangAllocation",
     .flags = FIELD_NULLABLE,
     BOOL,
     .help = "Start all tasks together; default true"},
    {.name = "startBarrier", BOOL, .help = "No command begins before all tasks are up (Skep)"},
    {.name = "startBarrierTimeout",
     INT(1, 100000),
     .help = "Minutes that tasks wait for each other; default 30 (Skep)"},
    {.name = "hostNetwork", BOOL, .help = "Refuse the job without the machine's network (Skep)"},
    {.name = "storages",
     .flags = FIELD_NULLABLE,
     MAPS(0, &storage),
     .help = "Storages to mount; empty: the default ones"},
    {.name = "hivedScheduler",
     .flags = FIELD_NULLABLE,
     .kind = FIELD_MAP,
     .shape = &hived,
     .help = "Placement"},
    {.name = SPEC_PLUGIN_PREFIX,
     .flags = FIELD_NULLABLE,
     .kind = FIELD_VARIANT_LIST,
     .max = SPEC_LIST_MAX,
     .tag = "plugin",
     .variants = plugins,
     .variant_count = COUNT_OF(plugins),
     .help = "Runtime plugins"},
    SKEP_FIELDS,
};
static const struct shape extras = SHAPE(extras_fields, UNKNOWN_FREE);

/* task roles of protocol 2 */

static const struct field completion_fields[] = {
    {.name = "minFailedInstances",
     .flags = FIELD_NULLABLE,
     INT(INT32_MIN, INT32_MAX),
     .help = "Failed tasks that fail the job; -1: none; default 1"},
    {.name = "minSucceededInstances",
     .flags = FIELD_NULLABLE,
     INT(INT32_MIN, INT32_MAX),
     .help = "Succeeded tasks that complete the job; -1: none; default all instances"},
};
static const struct shape completion = SHAPE(completion_fields, UNKNOWN_WARN);
static const struct field options_fields[] = {
    {.name = "shmMB", INT(1, SPEC_MEMORY_MIB_MAX), .help = "Size of /dev/shm; default 512"},
    {.name = "infiniband", BOOL, .help = "Give the task an RDMA device"},
};
static const struct shape options = SHAPE(options_fields, UNKNOWN_WARN);
static const struct field resource_fields[] = {
    {.name = "cpu", .flags = FIELD_REQUIRED, INT(1, SPEC_CPU_MAX), .help = "CPUs"},
    {.name = "memoryMB",
     .flags = FIELD_REQUIRED,
     INT(1, SPEC_MEMORY_MIB_MAX),
     .help = "Memory in MiB"},
    {.name = "gpu", .flags = FIELD_REQUIRED, INT(0, SPEC_GPU_MAX), .help = "GPUs"},
    {.name = "ports",
     .flags = FIELD_NULLABLE,
     .kind = FIELD_INT_MAP,
     .min = 1,
     .max = SPEC_PORTS_MAX,
     .pattern = &identifier,
     .help = "Labels to numbers of ports; ssh and http are always there"},
};
static const struct shape resource = SHAPE(resource_fields, UNKNOWN_ERROR);
static const struct field role_fields[] = {
    {.name = "protocolVersion",
     .kind = FIELD_CHOICE,
     .flags = FIELD_CONVERTS,
     .choices = two,
     .help = "2"},
    {.name = "instances", INT(1, SPEC_INSTANCES_MAX), .help = "Tasks of the role; default 1"},
    {.name = "completion",
     .flags = FIELD_NULLABLE,
     .kind = FIELD_MAP,
     .shape = &completion,
     .help = "When tasks of this role end the job"},
    {.name = "taskRetryCount",
     INT(-2, SPEC_RETRY_MAX),
     .help = "Retries of one task, for jobs without gangAllocation; default 0"},
    {.name = "prerequisites", STRINGS(0), .help = "Prerequisites to prepare, in this order"},
    {.name = "dockerImage",
     .flags = FIELD_REQUIRED,
     NAME,
     .help = "Name of a prerequisite of type dockerimage"},
    {.name = "data", NAME, .help = "Name of a prerequisite, for <% $data… %>"},
    {.name = "output", NAME, .help = "Name of a prerequisite, for <% $output… %>"},
    {.name = "script", NAME, .help = "Name of a prerequisite, for <% $script… %>"},
    {.name = "extraContainerOptions",
     .flags = FIELD_NULLABLE,
     .kind = FIELD_MAP,
     .shape = &options,
     .help = "Shared memory, Infiniband"},
    {.name = "resourcePerInstance",
     .flags = FIELD_REQUIRED,
     .kind = FIELD_MAP,
     .shape = &resource,
     .help = "What each task gets"},
    {.name = "commands",
     .flags = FIELD_REQUIRED,
     LINES(1),
     .help = "Lines of shell that a task runs"},
};
static const struct shape role = SHAPE(role_fields, UNKNOWN_ERROR);

/* the top of protocol 2 */

static const struct field deployed_fields[] = {
    {.name = "preCommands", LINES(0), .help = "Lines before the role's commands"},
    {.name = "postCommands", LINES(0), .help = "Lines behind the role's commands"},
};
static const struct shape deployed = SHAPE(deployed_fields, UNKNOWN_WARN);
static const struct field deployment_fields[] = {
    {.name = "name", .flags = FIELD_REQUIRED, NAME, .help = "Name for defaults.deployment"},
    {.name = "protocolVersion", .kind = FIELD_CHOICE, .flags = FIELD_CONVERTS, .choices = two},
    {.name = "version", .kind = FIELD_LABEL, .help = "Of the deployment; not used"},
    {.name = "taskRoles",
     .flags = FIELD_REQUIRED,
     .kind = FIELD_MAP_MAP,
     .max = SPEC_ROLES_MAX,
     .shape = &deployed,
     .help = "Roles and what is run around their commands"},
};
static const struct shape deployment = SHAPE(deployment_fields, UNKNOWN_WARN);
static const struct field defaults_fields[] = {
    {.name = "virtualCluster",
     STRING(0, SPEC_NAME_MAX),
     .help = "Virtual cluster; default default"},
    {.name = "deployment", NAME, .help = "The deployment to use"},
};
static const struct shape defaults = SHAPE(defaults_fields, UNKNOWN_WARN);

static const struct field v2_fields[] = {
    {.name = "protocolVersion",
     .kind = FIELD_CHOICE,
     .flags = FIELD_REQUIRED | FIELD_CONVERTS,
     .choices = two,
     .help = "2"},
    {.name = "name",
     .flags = FIELD_REQUIRED,
     NAME,
     .pattern = &job_name,
     .help = "Name of the job, unique among your jobs"},
    {.name = "type", .flags = FIELD_REQUIRED, .kind = FIELD_CHOICE, .choices = job, .help = "job"},
    {.name = "version", .kind = FIELD_LABEL, .flags = FIELD_NULLABLE, .help = "Informational"},
    {.name = "contributor",
     .flags = FIELD_NULLABLE,
     STRING(0, SPEC_DESCRIPTION_MAX),
     .help = "Informational"},
    {.name = "description",
     .flags = FIELD_NULLABLE,
     STRING(0, SPEC_DESCRIPTION_MAX),
     .help = "Informational"},
    {.name = "prerequisites",
     .kind = FIELD_VARIANT_LIST,
     .min = 1,
     .max = SPEC_LIST_MAX,
     .tag = "type",
     .variants = prerequisites,
     .variant_count = COUNT_OF(prerequisites),
     .help = "Images, scripts, data and outputs"},
    {.name = "parameters",
     .flags = FIELD_NULLABLE,
     .kind = FIELD_FREE_MAP,
     .help = "Values for <% $parameters.x %>"},
    {.name = "secrets",
     .flags = FIELD_NULLABLE,
     .kind = FIELD_FREE_MAP,
     .help = "Values for <% $secrets.x %>, never stored or shown"},
    {.name = "jobRetryCount", INT(0, SPEC_RETRY_MAX), .help = "Retries of the job; default 0"},
    {.name = "taskRoles",
     .flags = FIELD_REQUIRED,
     .kind = FIELD_MAP_MAP,
     .min = 1,
     .max = SPEC_ROLES_MAX,
     .pattern = &identifier,
     .shape = &role,
     .help = "The roles of the job"},
    {.name = "deployments",
     .flags = FIELD_NULLABLE,
     MAPS(0, &deployment),
     .help = "Commands around those of the roles"},
    {.name = "defaults",
     .flags = FIELD_NULLABLE,
     .kind = FIELD_MAP,
     .shape = &defaults,
     .help = "Virtual cluster and deployment"},
    {.name = "extras",
     .flags = FIELD_NULLABLE,
     .kind = FIELD_MAP,
     .shape = &extras,
     .help = "Everything beyond the protocol"},
};
const struct shape spec_v2_shape = SHAPE(v2_fields, UNKNOWN_ERROR);

/* format 1 */

#define V1_INT(least, most) .flags = FIELD_CONVERTS, INT(least, most)

static const struct field v1_port_fields[] = {
    {.name = "label",
     .flags = FIELD_REQUIRED,
     NAME,
     .pattern = &v1_label,
     .help = "Name of the ports"},
    {.name = "beginAt", V1_INT(0, 65535), .help = "First port; 0: any free ones; default 0"},
    {.name = "portNumber", V1_INT(1, SPEC_PORTS_MAX), .help = "How many; default 1"},
};
static const struct shape v1_port = SHAPE(v1_port_fields, UNKNOWN_ERROR);
static const struct field v1_role_fields[] = {
    {.name = "name",
     .flags = FIELD_REQUIRED,
     NAME,
     .pattern = &v1_role_name,
     .help = "Name of the role, unique in the job"},
    {.name = "taskNumber", V1_INT(1, SPEC_INSTANCES_MAX), .help = "Tasks; default 1"},
    {.name = "cpuNumber", V1_INT(1, SPEC_CPU_MAX), .help = "CPUs of a task; default 1"},
    {.name = "memoryMB", V1_INT(100, SPEC_MEMORY_MIB_MAX), .help = "Memory, MiB; default 100"},
    {.name = "shmMB", V1_INT(1, SPEC_MEMORY_MIB_MAX), .help = "Size of /dev/shm; default 64"},
    {.name = "gpuNumber", V1_INT(0, SPEC_GPU_MAX), .help = "GPUs of a task; default 0"},
    {.name = "command",
     .flags = FIELD_REQUIRED,
     STRING(1, SPEC_COMMAND_MAX),
     .help = "Shell command that a task runs"},
    {.name = "portList",
     MAPS(0, &v1_port),
     .help = "Ports of a task; ssh and http are always there"},
    {.name = "minFailedTaskCount",
     .flags = FIELD_NULLABLE | FIELD_CONVERTS,
     INT(1, SPEC_INSTANCES_MAX),
     .help = "Failed tasks that fail the job; null: none; default 1"},
    {.name = "minSucceededTaskCount",
     .flags = FIELD_NULLABLE | FIELD_CONVERTS,
     INT(1, SPEC_INSTANCES_MAX),
     .help = "Succeeded tasks that complete the job; default null: none"},
};
static const struct shape v1_role = SHAPE(v1_role_fields, UNKNOWN_ERROR);
static const struct field v1_extras_fields[] = {SKEP_FIELDS};
static const struct shape v1_extras = SHAPE(v1_extras_fields, UNKNOWN_FREE);

static const struct field v1_fields[] = {
    {.name = "jobName",
     .flags = FIELD_REQUIRED,
     NAME,
     .pattern = &v1_job_name,
     .help = "Name of the job, unique among your jobs"},
    {.name = "image", .flags = FIELD_REQUIRED, URI, .help = "Image of all tasks"},
    {.name = "authFile",
     STRING(0, SPEC_URI_MAX),
     .help = "File of three lines: registry, user name, password"},
    {.name = "dataDir", STRING(0, SPEC_URI_MAX), .help = "Where the program reads"},
    {.name = "outputDir", STRING(0, SPEC_URI_MAX), .help = "Where the program writes"},
    {.name = "codeDir", STRING(0, SPEC_URI_MAX), .help = "Copied to the working directory"},
    {.name = "virtualCluster", STRING(0, SPEC_NAME_MAX), .help = "Default default"},
    {.name = "gpuType", STRING(0, SPEC_NAME_MAX), .help = "Types of GPU, any of a comma list"},
    {.name = "killAllOnCompletedTaskNumber",
     V1_INT(0, SPEC_TASKS_MAX),
     .help = "Completed tasks that end the job; default 0: off"},
    {.name = "retryCount",
     V1_INT(-2, SPEC_RETRY_MAX),
     .help = "Retries; -1: of any failure, -2: always; default 0"},
    {.name = "jobEnvs",
     .kind = FIELD_FREE_MAP,
     .max = SPEC_LIST_MAX,
     .help = "Variables of all tasks"},
    {.name = "isDebug", BOOL, .help = "Keep containers after a failure"},
    {.name = "extras",
     .kind = FIELD_MAP,
     .shape = &v1_extras,
     .help = "Everything beyond the format"},
    {.name = "taskRoles",
     .flags = FIELD_REQUIRED,
     .kind = FIELD_MAP_LIST,
     .min = 1,
     .max = SPEC_ROLES_MAX,
     .shape = &v1_role,
     .help = "The roles of the job"},
};
const struct shape spec_v1_shape = SHAPE(v1_fields, UNKNOWN_ERROR);

/* the marketplace's format */

#define MARKET_FIELDS                                                                              \
    {.name = "protocol_version", STRING(0, SPEC_NAME_MAX), .help = "v2, or nothing"},              \
        {.name = "version", .kind = FIELD_LABEL, .help = "Informational"},                         \
        {.name = "contributor", STRING(0, SPEC_DESCRIPTION_MAX), .help = "Informational"},         \
    {                                                                                              \
        .name = "description", STRING(0, SPEC_DESCRIPTION_MAX), .help = "Informational"            \
    }
static const struct field market_prerequisite_fields[] = {
    MARKET_FIELDS,
    {.name = "name", .flags = FIELD_REQUIRED, NAME, .help = "Name that tasks refer to"},
    {.name = "type", .flags = FIELD_REQUIRED, NAME, .help = "Kind of the prerequisite"},
    {.name = "uri", .kind = FIELD_ANY, .help = "Where it is: one address, or a list of them"},
    {.name = "command", .kind = FIELD_ANY, .help = "Lines of shell that provide it"},
};
static const struct shape market_prerequisite_shape =
    SHAPE(market_prerequisite_fields, UNKNOWN_ERROR);
static const struct shape_variant market_prerequisites[] = {
    {"dockerimage", &market_prerequisite_shape},
    {"script", &market_prerequisite_shape},
    {"output", &market_prerequisite_shape},
    {"data", &market_prerequisite_shape}};
static const struct field market_each_fields[] = {
    {.name = "cpu", V1_INT(1, SPEC_CPU_MAX), .help = "CPUs; default 1"},
    {.name = "memoryMB", V1_INT(100, SPEC_MEMORY_MIB_MAX), .help = "Memory, MiB; default 100"},
    {.name = "shmMB", V1_INT(1, SPEC_MEMORY_MIB_MAX), .help = "Size of /dev/shm; default 64"},
    {.name = "gpu", V1_INT(0, SPEC_GPU_MAX), .help = "GPUs; default 0"},
};
static const struct shape market_each = SHAPE(market_each_fields, UNKNOWN_ERROR);
static const struct field market_resource_fields[] = {
    {.name = "instances", V1_INT(1, SPEC_INSTANCES_MAX), .help = "Tasks of the role; default 1"},
    {.name = "resourcePerInstance",
     .kind = FIELD_MAP,
     .shape = &market_each,
     .help = "What each of them gets"},
    {.name = "portList", MAPS(0, &v1_port), .help = "Ports of each; ssh and http are always there"},
};
static const struct shape market_resource = SHAPE(market_resource_fields, UNKNOWN_ERROR);
static const struct field market_task_fields[] = {
    {.name = "role",
     .flags = FIELD_REQUIRED,
     NAME,
     .pattern = &v1_role_name,
     .help = "Name of the role, unique in the job"},
    {.name = "type", STRING(0, SPEC_NAME_MAX), .help = "Says nothing"},
    {.name = "data", STRING(0, SPEC_NAME_MAX), .help = "Name of a prerequisite of this type"},
    {.name = "script", STRING(0, SPEC_NAME_MAX), .help = "Name of a prerequisite of this type"},
    {.name = "output", STRING(0, SPEC_NAME_MAX), .help = "Name of a prerequisite of this type"},
    {.name = "dockerimage",
     .flags = FIELD_REQUIRED,
     NAME,
     .help = "Name of a prerequisite of this type"},
    {.name = "resource", .kind = FIELD_MAP, .shape = &market_resource, .help = "What it gets"},
    {.name = "minFailedTaskCount",
     .flags = FIELD_NULLABLE | FIELD_CONVERTS,
     INT(1, SPEC_INSTANCES_MAX),
     .help = "Failed tasks that fail the job; null: none; default 1"},
    {.name = "minSucceededTaskCount",
     .flags = FIELD_NULLABLE | FIELD_CONVERTS,
     INT(1, SPEC_INSTANCES_MAX),
     .help = "Succeeded tasks that complete the job; default null: none"},
    {.name = "parameters", .kind = FIELD_FREE_MAP, .help = "Values for $$x$$ in the command"},
    {.name = "command",
     .flags = FIELD_REQUIRED,
     LINES(1),
     .help = "Lines of shell that a task runs"},
};
static const struct shape market_task = SHAPE(market_task_fields, UNKNOWN_ERROR);
static const struct field market_fields[] = {
    MARKET_FIELDS,
    {.name = "name",
     .flags = FIELD_REQUIRED,
     NAME,
     .pattern = &v1_job_name,
     .help = "Name of the job, unique among your jobs"},
    {.name = "type", .flags = FIELD_REQUIRED, .kind = FIELD_CHOICE, .choices = job, .help = "job"},
    {.name = "retryCount",
     V1_INT(-2, SPEC_RETRY_MAX),
     .help = "Retries; -1: of any failure, -2: always; default 1"},
    {.name = "gpuType", STRING(0, SPEC_NAME_MAX), .help = "Types of GPU, any of a comma list"},
    {.name = "experiment", STRING(0, SPEC_DESCRIPTION_MAX), .help = "Informational"},
    {.name = "virtualCluster", STRING(0, SPEC_NAME_MAX), .help = "Default default"},
    {.name = "parameters", .kind = FIELD_FREE_MAP, .help = "Values for $$x$$"},
    {.name = "tasks",
     .flags = FIELD_REQUIRED,
     .kind = FIELD_MAP_LIST,
     .min = 1,
     .max = SPEC_ROLES_MAX,
     .shape = &market_task,
     .help = "The roles of the job"},
    {.name = "prerequisites",
     .flags = FIELD_REQUIRED,
     .kind = FIELD_VARIANT_LIST,
     .min = 1,
     .max = SPEC_LIST_MAX,
     .tag = "type",
     .variants = market_prerequisites,
     .variant_count = COUNT_OF(market_prerequisites),
     .help = "Images, scripts, data and outputs"},
};
const struct shape spec_market_shape = SHAPE(market_fields, UNKNOWN_ERROR);

const struct shape *spec_shape(enum spec_format format)
{
    switch (format) {
    case SPEC_V1:
        return &spec_v1_shape;
    case SPEC_MARKET:
        return &spec_market_shape;
    case SPEC_V2:
        break;
    }
    return &spec_v2_shape;
}

void spec_schema(enum spec_format format, struct buf *out)
{
    static const char *const titles[] = {
        [SPEC_V1] = "Early PAI and QIZHI job file, as Skep reads it",
        [SPEC_V2] = "OpenPAI job protocol 2, as Skep reads it",
        [SPEC_MARKET] = "Job file of OpenPAI's marketplace (0.8 to 0.12), as Skep reads it",
    };
    shape_schema(spec_shape(format), titles[format], out);
}
