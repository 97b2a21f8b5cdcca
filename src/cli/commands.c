#include "base/memory.h"
#include "cli/bulk.h"
#include "cli/command.h"
#include "sys/api_socket.h"
#include <string.h>

#define END                                                                                        \
    {                                                                                              \
        0                                                                                          \
    }

const struct cli_option GLOBAL_OPTIONS[] = {
    {"server", 's', "URL", "server to talk to (SKEP_SERVER, or the one logged in to)", NULL, 0},
    {"context", 0, "NAME", "one of the servers logged in to (SKEP_CONTEXT)", NULL, 0},
    {"client-certificate", 0, "PEM", "certificate to show to a server that asks for one", NULL, 0},
    {"client-key", 0, "PEM", "its key, when it is in another file", NULL, 0},
    {"output", 'o', "FORM", "table, wide, json or yaml", "table wide json yaml", 0},
    {"color", 0, "WHEN", "auto, always or never", "auto always never", 0},
    {"help", 'h', NULL, "show help of this command", NULL, 0},
    END,
};

static const struct cli_option NO_OPTIONS[] = {END};

static const struct cli_option CONVERT_OPTIONS[] = {
    {"lossy", 0, NULL, "leave out what protocol 2 cannot say", NULL, 0},
    END,
};

static const struct cli_option SUBMIT_OPTIONS[] = {
    {"wait", 'w', NULL, "wait until the job ends; exit with its code", NULL, 0},
    {"follow", 'f', NULL, "show its log while waiting", NULL, 0},
    {"role", 'r', "ROLE", "task role whose log is followed (default: the first)", NULL, 0},
    {"index", 'i', "N", "task index whose log is followed (default: 0)", NULL, 0},
    {"quiet", 'q', NULL, "print only the job's name", NULL, 0},
    {"secrets-of", 0, "JOB", "one of your jobs, whose secrets masked ones stand for", NULL,
     KIND_JOB},
    END,
};

static const struct cli_option CLONE_OPTIONS[] = {
    {"name", 'n', "NAME", "name of the copy (default: JOB_2, after JOB_2 JOB_3, …)", NULL, 0},
    {"wait", 'w', NULL, "wait until the job ends; exit with its code", NULL, 0},
    {"follow", 'f', NULL, "show its log while waiting", NULL, 0},
    {"role", 'r', "ROLE", "task role whose log is followed (default: the first)", NULL, 0},
    {"index", 'i', "N", "task index whose log is followed (default: 0)", NULL, 0},
    {"quiet", 'q', NULL, "print only the job's name", NULL, 0},
    END,
};

static const struct cli_option RUN_OPTIONS[] = {
    {"image", 0, "IMAGE", "container image (needed)", NULL, 0},
    {"name", 'n', "NAME", "job name (default: run-DATE-RANDOM)", NULL, 0},
    {"cpu", 'c', "N", "CPU cores (default: 1)", NULL, 0},
    {"memory", 'm', "MIB", "memory in MiB (default: 1024)", NULL, 0},
    {"gpu", 'g', "N", "GPUs (default: 0)", NULL, 0},
    {"shm", 0, "MIB", "size of /dev/shm in MiB (default: 512, or half of a smaller memory)", NULL,
     0},
    {"instances", 'N', "N", "number of tasks (default: 1)", NULL, 0},
    {"vc", 0, "NAME", "virtual cluster (default: default)", NULL, 0},
    {"priority", 0, "CLASS", "oppo, test, prod or crit", "oppo test prod crit", 0},
    {"retry", 0, "N", "retries after failures of its own (default: 0)", NULL, 0},
    {"env", 'e', "NAME=VALUE", "set a variable; may be repeated", NULL, 0},
    {"notify", 0, "CHANGES",
     "send a mail at these: running, retried, succeeded, stopped, failed (comma list)", NULL, 0},
    {"detach", 'd', NULL, "submit, do not wait", NULL, 0},
    {"print", 0, NULL, "only print the job file", NULL, 0},
    END,
};

static const struct cli_option LIST_OPTIONS[] = {
    FILTER_OPTIONS,
    {"order", 0, "FIELD,ASC|DESC", "order, for example state,ASC (default: newest first)", NULL, 0},
    {"limit", 'l', "N", "at most N jobs (default: 20)", NULL, 0},
    {"offset", 0, "N", "leave out the first N", NULL, 0},
    {"quiet", 'q', NULL, "print only the jobs' names", NULL, 0},
    END,
};

static const struct cli_option BULK_OPTIONS[] = {
    {"all", 0, NULL, "all of your jobs to which it can be done", NULL, 0},
    {"yes", 'y', NULL, "with --all: do not ask on the terminal", NULL, 0},
    FILTER_OPTIONS,
    {"dry-run", 0, NULL, "with --all or a filter: print the jobs' names, and do nothing", NULL, 0},
    END,
};

static const struct cli_option ARCHIVE_OPTIONS[] = {
    {"delete", 0, NULL, "delete the job when everything has been written", NULL, 0},
    {"all", 0, NULL, "all of your jobs that have ended", NULL, 0},
    {"yes", 'y', NULL, "with --all: do not ask on the terminal", NULL, 0},
    FILTER_OPTIONS,
    {"dry-run", 0, NULL, "with --all or a filter: print the jobs' names, and do nothing", NULL, 0},
    END,
};

static const struct cli_option DESCRIBE_OPTIONS[] = {
    {"attempts", 'a', NULL, "show every attempt of the job and of its tasks", NULL, 0},
    {"events", 'e', NULL, "show the job's events, too", NULL, 0},
    END,
};

static const struct cli_option LOGS_OPTIONS[] = {
    {"follow", 'f', NULL, "go on until the job ends, through its retries", NULL, 0},
    {"role", 'r', "ROLE", "task role (default: the first)", NULL, 0},
    {"index", 'i', "N", "task index (default: 0)", NULL, 0},
    {"stream", 0, "NAME", "all, stdout, stderr or runtime (default: all)",
     "all stdout stderr runtime", 0},
    {"tail", 'n', "LINES", "begin with the last LINES lines", NULL, 0},
    {"since", 0, "TIME", "begin with what was written at this time, or 30m, 2h or 7d ago", NULL, 0},
    {"attempt", 'a', "N", "this attempt of the job (default: the latest)", NULL, 0},
    {"task-attempt", 0, "N", "this attempt of the task (default: 0; with --attempt)", NULL, 0},
    {"search", 0, "TEXT", "only lines with this text, of all tasks and attempts", NULL, 0},
    {"expression", 'e', "RE", "as --search: lines that match this expression of RE2", NULL, 0},
    {"ignore-case", 0, NULL, "with --search: large and small letters are the same", NULL, 0},
    {"around", 'C', "N", "with --search: N lines before and after each", NULL, 0},
    END,
};

static const struct cli_option EXEC_OPTIONS[] = {
    {"terminal", 't', NULL, "a terminal, also where input or output is none here", NULL, 0},
    {"no-terminal", 'T', NULL, "none: bytes as they are, both streams apart", NULL, 0},
    END,
};

static const struct cli_option OPEN_OPTIONS[] = {
    {"port", 'p', "LABEL", "the port, as the job file calls it (http by default)", NULL, 0},
    {"offset", 0, "N", "which of the ports of this label, from 0", NULL, 0},
    {"path", 0, "PATH", "where to begin: /lab", NULL, 0},
    {"print", 0, NULL, "print the address only, and start no browser", NULL, 0},
    END,
};

static const struct cli_option WAIT_OPTIONS[] = {
    {"timeout", 't', "SECONDS", "give up after this time (exit code 124)", NULL, 0},
    {"quiet", 'q', NULL, "print nothing", NULL, 0},
    END,
};

static const struct cli_option EVENTS_OPTIONS[] = {
    {"follow", 'f', NULL, "go on until the job ends", NULL, 0},
    {"type", 0, "TYPE", "only Normal or Warning", "Normal Warning", 0},
    {"limit", 'l', "N", "the newest N (default: 1000)", NULL, 0},
    END,
};

static const struct cli_option USE_OPTIONS[] = {
    {"role", 'r', "ROLE", "tasks of this role alone", NULL, 0},
    {"index", 'i', "N", "this task of the role alone", NULL, 0},
    {"attempt", 'a', "N", "this attempt of the job (default: the latest)", NULL, 0},
    {"recent", 0, NULL, "the last half hour, by ten seconds (default: the whole time)", NULL, 0},
    {"node", 0, "NODE", "of a machine and not of a job", NULL, 0},
    END,
};

static const struct cli_option USER_OPTIONS[] = {
    {"email", 0, "ADDRESS", "mail address", NULL, 0},
    {"admin", 0, "YES|NO", "administrator of the platform, or not", "yes no", 0},
    {"vc", 0, "NAMES", "virtual clusters granted to the user (comma list; replaces)", NULL, 0},
    {"groups", 0, "NAMES", "groups of the user (comma list; set replaces)", NULL, 0},
    {"password", 0, NULL, "set: ask for a new password", NULL, 0},
    {"no-password", 0, NULL, "add: the user logs in by the provider of the sign-on alone", NULL, 0},
    {"reuse-name", 0, NULL, "add, import: also the name of a user who was removed", NULL, 0},
    {"password-stdin", 0, NULL, "read the password from standard input", NULL, 0},
    END,
};

static const struct cli_option NODE_OPTIONS[] = {
    {"reason", 0, "TEXT", "why, for people", NULL, 0},
    END,
};

static const struct cli_option CLUSTER_OPTIONS[] = {
    {"reason", 0, "TEXT", "close: why, for people", NULL, 0},
    END,
};

static const struct cli_option GROUP_OPTIONS[] = {
    {"description", 0, "TEXT", "what the group is for", NULL, 0},
    {"vc", 0, "NAMES", "virtual clusters that members may use (comma list; replaces)", NULL, 0},
    {"storages", 0, "NAMES", "storages of members, the first by default (comma list; replaces)",
     NULL, 0},
    {"external-name", 0, "NAME", "what the provider of the sign-on calls the group", NULL, 0},
    {"admin", 0, "YES|NO", "add, set: members are administrators; join: of the group", "yes no", 0},
    END,
};

static const struct cli_option TOKEN_OPTIONS[] = {
    {"scope", 0, "SCOPE", "what it is good for (default: usual)", "usual read submit admin", 0},
    {"expires", 0, "SECONDS", "when it expires (default: never)", NULL, 0},
    END,
};

static const struct cli_option LOGIN_OPTIONS[] = {
    {"username", 'u', "NAME", "user name (asked for when not given)", NULL, 0},
    {"password-stdin", 0, NULL, "read the password from standard input", NULL, 0},
    {"oidc", 0, NULL, "log in with your organisation's account, in a browser of this machine", NULL,
     0},
    {"device", 0, NULL, "the same in a browser of another machine, by a code", NULL, 0},
    {"with-token", 0, NULL, "read a token instead of a password from standard input", NULL, 0},
    {"fingerprint", 0, "SHA256", "trust the server's certificate by its fingerprint", NULL, 0},
    END,
};

static const struct cli_option AUDIT_OPTIONS[] = {
    {"user", 'u', "NAME", "what this user asked for", NULL, 0},
    {"subject", 0, "NAME", "what was asked about this job, user, group, token or node", NULL, 0},
    {"since", 0, "TIME", "from this time on", NULL, 0},
    {"until", 0, "TIME", "before this time", NULL, 0},
    {"refused", 0, NULL, "only what was refused", NULL, 0},
    {"limit", 'l', "N", "the newest N (default: 100)", NULL, 0},
    END,
};

static const struct cli_option ALERTS_OPTIONS[] = {
    {"all", 'a', NULL, "also those that have ended within the last seven days", NULL, 0},
    END,
};

static const struct cli_option STORAGE_OPTIONS[] = {
    {"recursive", 'r', NULL, "get, put: folders with all that is in them", NULL, 0},
    {"replace", 0, NULL, "get, put: replace the file that has this name", NULL, 0},
    END,
};

static const struct cli_option TEMPLATE_OPTIONS[] = {
    {"keyword", 0, "TEXT", "list: part of name, author or summary", NULL, 0},
    {"author", 0, "USER", "list: templates of this user", NULL, 0},
    {"tag", 0, "NAMES", "list: with all of these tags; save: its tags (comma lists)", NULL, 0},
    {"category", 0, "NAMES", "likewise", NULL, 0},
    {"status", 0, "STATUS", "list: of this state", "private pending approved rejected", 0},
    {"order", 0, "ORDER", "list: the largest first (default: updated)", "updated uses stars", 0},
    {"official", 0, NULL, "list: only those that an administrator calls official", NULL, 0},
    {"shared", 0, NULL, "list: only those that are shared with everyone or with a group", NULL, 0},
    {"version", 0, "N", "get, restore: this version", NULL, 0},
    {"summary", 0, "TEXT", "save: what it is for, in a line", NULL, 0},
    {"description", 0, "TEXT", "save: how it is used", NULL, 0},
    {"share", 0, "WITH", "save: private, public, or groups (comma list)", NULL, 0},
    {"reason", 0, "TEXT", "reject: why, for its author (needed)", NULL, 0},
    END,
};

static const struct cli_option QUOTA_OPTIONS[] = {
    {"group", 0, NULL, "NAME is that of a group", NULL, 0},
    END,
};

static const struct cli_option REQUEST_OPTIONS[] = {
    {"reason", 0, "TEXT", "ask, account: why; accept, refuse: the answer (refuse needs one)", NULL,
     0},
    {"group", 0, "NAME", "accept: by this group, which the user becomes a member of", NULL, 0},
    {"reuse-name", 0, NULL, "accept: also the name of a user who was removed", NULL, 0},
    {"status", 0, "STATUS", "list: in these states (comma list)", "open accepted refused withdrawn",
     0},
    {"user", 'u', "NAME", "list: of this user", NULL, 0},
    {"email", 0, "ADDRESS", "account: your mail address (needed)", NULL, 0},
    {"password-stdin", 0, NULL, "account: read the password from standard input", NULL, 0},
    END,
};

static const struct cli_option ADMIN_OPTIONS[] = {
    {"level", 0, "LEVEL", "log: error, warning, info or debug (default: all)", NULL, 0},
    {"lines", 'n', "N", "log: so many of the newest (default: 100, at most 2000)", NULL, 0},
    {"follow", 'f', NULL, "log: go on as lines come", NULL, 0},
    {"config", 0, "FILE", "the server's configuration: say what of it the machine cannot give",
     NULL, KIND_FILE},
    {"data", 0, "DIRECTORY",
     "the server's data directory (default: the configuration's, /var/lib/skep)", NULL, 0},
    END,
};

static const struct cli_option KUBE_OPTIONS[] = {
    {"config", 0, "FILE", "the server's configuration: its engine.kubernetes says all that follows",
     NULL, KIND_FILE},
    {"kubeconfig", 0, "FILE", "whom to ask (default: KUBECONFIG, ~/.kube/config, or as a pod)",
     NULL, KIND_FILE},
    {"kube-context", 0, "NAME", "context of the kubeconfig (default: its current one)", NULL, 0},
    {"namespace", 'n', "NAME", "of the pods (default: skep-jobs)", NULL, 0},
    {"account", 0, "NAMESPACE/NAME",
     "the service account whose rights are checked (default: who asks)", NULL, 0},
    {"node-selector", 'l', "LABELS", "labels of Skep's nodes, a=b,c (default: all nodes)", NULL, 0},
    {"gpus", 0, "WAY", "how tasks get GPUs (default: device-plugin)", "env device-plugin dra", 0},
    {"gpu-resource", 0, "NAME", "what the device plugin offers (default: nvidia.com/gpu)", NULL, 0},
    {"device-driver", 0, "NAME", "the DRA driver of the GPUs (default: gpu.nvidia.com)", NULL, 0},
    {"device-class", 0, "NAME", "that resource claims name (default: gpu.nvidia.com)", NULL, 0},
    {"runtime-class", 0, "NAME", "of the pods", NULL, 0},
    {"priority-class", 0, "NAME", "of the pods", NULL, 0},
    {"taint", 0, "KEY", "of Skep's nodes (default: skep.internal/dedicated)", NULL, 0},
    {"network", 0, "WHOSE", "that the pods are in (default: host, that of their nodes)", "host pod",
     0},
    END,
};

static const struct cli_option IMPORT_OPTIONS[] = {
    {"to", 0, "FOLDER", "the new folder (default: skep-import)", NULL, KIND_FILE},
    {"engine", 0, "KIND", "where tasks run (default: kubernetes)", "kubernetes local", 0},
    {"init-image", 0, "IMAGE", "of Kubernetes: the image with skep-init", NULL, 0},
    END,
};

static const struct cli_option TAG_OPTIONS[] = {
    {"remove", 0, NULL, "take the tag away", NULL, 0},
    {"all", 0, NULL, "all of your jobs", NULL, 0},
    {"yes", 'y', NULL, "with --all: do not ask on the terminal", NULL, 0},
    FILTER_OPTIONS,
    {"dry-run", 0, NULL, "with --all or a filter: print the jobs' names, and do nothing", NULL, 0},
    END,
};

const struct cli_command COMMANDS[] = {
    {"validate", "FILE…", KIND_FILE, NULL, 1, -1, "check job files",
     "Checks job files of all formats (OpenPAI protocol 2 in YAML, the YAML of OpenPAI's early "
     "marketplace, early PAI and QIZHI in JSON with comments); the format is told by the content. "
     "Every problem is printed as FILE:LINE:COLUMN: "
     "PATH: what is wrong. A FILE of - is standard input. No server is needed.\n\n"
     "Exit code 0: all are valid, 1: one is not, 2: wrong command line or a file that cannot be "
     "read.",
     "skep validate job.yaml", NO_OPTIONS, run_validate},
    {"convert", "FILE", KIND_FILE, NULL, 1, 1, "write an early job file in protocol 2",
     "Prints an early job file, of format 1 or of OpenPAI's early marketplace, as one of protocol "
     "2 that means the same; its comments stay with what they are about. A file of protocol 2 is "
     "printed as it is. A FILE of - is standard input. No server is needed.\n\n"
     "What protocol 2 cannot say is a warning, and nothing is printed, unless --lossy is given: "
     "then it is left out and noted at the end of the new file.",
     "skep convert old.json > new.yaml", CONVERT_OPTIONS, run_convert},
    {"submit", "FILE", KIND_FILE, NULL, 1, 1, "submit a job file",
     "Submits a job file; - is standard input. When the command ends, the job is on the server's "
     "disk and will not be lost. When the connection is cut before the answer has come, the job is "
     "sent again for up to a minute, which makes no second job of it.\n\n"
     "A file that skep config has printed has its secrets masked. With --secrets-of JOB a mask "
     "stands for what JOB was submitted with: that of the whole block for all of its secrets, that "
     "of one for the secret of the same name. JOB must be yours, an admin may not take the secrets "
     "of others. Without it a masked secret is refused.\n\n"
     "With --wait or --follow the exit code is the job's own.",
     "skep submit --follow train.yaml", SUBMIT_OPTIONS, run_submit},
    {"clone", "JOB", KIND_JOB, NULL, 1, 1, "submit a copy of one of your jobs",
     "Submits the file of JOB again under another name, with its secrets; every other byte of the "
     "file stays. JOB must be yours, because of the secrets. To change more, see skep submit "
     "--secrets-of.\n\n"
     "With --wait or --follow the exit code is the job's own.",
     "skep clone --name train2 --follow train", CLONE_OPTIONS, run_clone},
    {"run", "COMMAND [ARGUMENT…]", KIND_REST, NULL, 1, -1, "run one command as a job",
     "Makes a job of one task role out of the flags, submits it, shows its log and exits with its "
     "code. One word is taken as a line of shell; several words are one command with its "
     "arguments.",
     "skep run --image debian:12 --gpu 1 -- nvidia-smi -L", RUN_OPTIONS, run_run},
    {"list", "", KIND_NONE, NULL, 0, 0, "list jobs",
     "Lists jobs of all users, the newest first. Conditions of several options must all hold.",
     "skep list --user @me --state RUNNING,WAITING", LIST_OPTIONS, run_list},
    {"describe", "JOB", KIND_JOB, NULL, 1, 1, "show everything about a job",
     "Shows state, times, why it waits or how it ended, and its tasks with node, GPUs and ports. A "
     "JOB is user~name, or the name of one of your own.\n\n"
     "With --attempts: every attempt of the job and of its tasks; of those that failed, the "
     "failure "
     "rule by which the end was recognised (its code, name, number and line in its file), the line "
     "of the log that matched, and the last lines of the log, which are kept when the log itself "
     "has been removed.",
     NULL, DESCRIBE_OPTIONS, run_describe},
    {"config", "JOB", KIND_JOB, NULL, 1, 1, "print the job file of a job",
     "Prints the file that was submitted, with its secrets masked. Only for the owner and admins.",
     NULL, NO_OPTIONS, run_config},
    {"logs", "JOB", KIND_JOB, NULL, 1, 1, "show the log of a task",
     "Prints what a task wrote. With --follow it goes on, through retries of the job, until the "
     "job ends.\n\n"
     "A job of one task needs no --role and --index; of others the first task is taken, and with "
     "--attempt one must be named. A log that has become too long has lost its beginning; a note "
     "on "
     "standard error says how much.\n\n"
     "With --search or --expression the server searches all logs of the job, or those that --role, "
     "--index, --attempt and --stream name. Each line is shown with its task, with the attempts of "
     "job and task where these are not the first, and with its number. The exit code is 1 when no "
     "line matches.\n\n"
     "The log comes as the program wrote it, so that colours and progress bars work: a terminal "
     "obeys what the program has put into it. Send the log of a stranger through `cat -v`; "
     "everything else that skep shows is free of control characters.",
     "skep logs -f --role worker --index 1 train", LOGS_OPTIONS, run_logs},
    {"exec", "JOB [TASK] -- COMMAND [ARGUMENT…]", KIND_JOB, NULL, 2, -1,
     "run a command in a running task",
     "Starts a command in the container of a running task, as its user, with its environment and "
     "working directory and within its limits, and exits with the command's code. The end of the "
     "task ends it. Who did this is in the job's story.\n\n"
     "TASK is ROLE, or ROLE[INDEX], also written ROLE:INDEX; without it the first task is meant. "
     "The command has a terminal when input and output here are one. Then a connection that breaks "
     "is taken up again for a minute. Without one, input, output and standard error are passed on "
     "as they are, and the command is ended when the connection breaks.\n\n"
     "Exit code 125: skep failed, or the session was ended, and not the command.",
     "skep exec train worker[1] -- nvidia-smi", EXEC_OPTIONS, run_exec},
    {"shell", "JOB [TASK]", KIND_JOB, NULL, 1, 2, "open a shell in a running task",
     "As `skep exec` with the image's own shell: bash where it has one, else sh.",
     "skep shell train worker[1]", EXEC_OPTIONS, run_shell},
    {"attach", "SESSION", KIND_NONE, NULL, 1, 1, "go on with a terminal that was cut off",
     "Connects to a session that `skep exec`, `skep shell` or the portal has opened and that lost "
     "its connection less than a minute ago, or takes one over from another window. The last 64 "
     "KiB "
     "of what it showed come again. When a connection cannot be had again, `skep exec` names the "
     "session.",
     NULL, NO_OPTIONS, run_attach},
    {"open", "JOB [TASK]", KIND_JOB, NULL, 1, 2, "open what a task serves in a browser",
     "Opens a notebook, TensorBoard or whatever else a running task serves on one of its ports. "
     "The "
     "address is printed, and opened by $BROWSER, or by xdg-open where there is a screen. It is "
     "good once, and for a minute; the browser then has 8 hours at most.\n\n"
     "TASK is ROLE, or ROLE[INDEX], also written ROLE:INDEX; without it the first task is meant. "
     "The operator must have set up web ports.",
     "skep open --port notebook --path /lab train", OPEN_OPTIONS, run_open},
    {"events", "JOB", KIND_JOB, NULL, 1, 1, "show what happened to a job",
     "Prints what happened to the job, the oldest first.", NULL, EVENTS_OPTIONS, run_events},
    {"use", "[JOB]", KIND_JOB, NULL, 0, 1, "show what a job or a machine used over time",
     "Shows processors, memory, GPUs, disks and network: how much was given, the mean and the most "
     "that was used, and its course from left to right, where a full block (or 9, where the "
     "terminal has no such blocks) is all that was given, or the most. What several tasks used is "
     "added up. What runs is looked at every ten seconds; of what ended earlier nothing is "
     "known.\n\n"
     "The network is that of the job's own network on a machine: its tasks there are each given an "
     "equal part of it. Of a task on the machine's own network it is not known.\n\n"
     "With --node all that runs on the machine counts, not the tasks of jobs alone. Of a node of a "
     "Kubernetes cluster processors and memory are known where the cluster has metrics-server.",
     "skep use --recent --role worker train", USE_OPTIONS, run_use},
    {"wait", "JOB…", KIND_JOB, NULL, 1, -1, "wait until jobs end",
     "Waits for all the jobs named and exits with the code of the first one that did not succeed: "
     "the job's own code; 126 when the platform ended it, 130 when it was stopped, 124 when the "
     "time is over, 125 when skep itself failed. A server that restarts meanwhile is waited for.",
     "skep wait --timeout 600 train && echo done", WAIT_OPTIONS, run_wait},
    {"stop", "[JOB…]", KIND_JOB, NULL, 0, -1, "stop jobs",
     "Stops jobs; their tasks get SIGTERM first.\n\n"
     "With --all or a filter instead of names the server does it to all jobs that match, of yours "
     "where no user is named: to those that wait or run where no state is. Each is tried, whatever "
     "becomes of the others. On a terminal --all asks first, unless --yes is given.",
     "skep stop --keyword sweep- --dry-run", BULK_OPTIONS, run_stop},
    {"start", "[JOB…]", KIND_JOB, NULL, 0, -1, "start stopped jobs again, or end a pause",
     "Starts jobs again that have been stopped. A job that waits for the time of its next try is "
     "retried now.\n\n"
     "With --all or a filter instead of names: see skep stop; to those that were stopped.",
     NULL, BULK_OPTIONS, run_start},
    {"delete", "[JOB…]", KIND_JOB, NULL, 0, -1, "delete ended jobs and their history",
     "Deletes jobs that have ended, with their logs and their history. There is no way back.\n\n"
     "With --all or a filter instead of names: see skep stop; to those that have ended.",
     NULL, BULK_OPTIONS, run_delete},
    {"archive", "[JOB] FOLDER", KIND_JOB, NULL, 1, 2, "keep all of ended jobs in a folder",
     "Writes everything that the server keeps of a job that has ended into FOLDER, which is made "
     "and must not exist or be empty.\n\n"
     "job.json has its file (secrets masked), every attempt of the job and of its tasks with the "
     "rule and the last lines of its end, its events, and the list of its logs. "
     "logs/ROLE-INDEX-ATTEMPT.log is what a task wrote, both streams together, where ATTEMPT is "
     "the job's and the task's, such as 1.0. A log that the server has no more, or that has lost "
     "its beginning, is named on standard error and in the list.\n\n"
     "With --delete the job is then deleted from the server, with its history. When anything could "
     "not be written the job stays, and skep exits with a code that is not 0; job.json is written "
     "last, so a folder without it is no archive.\n\n"
     "With --all or a filter instead of a name: see skep stop. Those that have ended are archived, "
     "each into FOLDER/USER~JOB; one that has its archive there already is left out; what a try "
     "that failed has left there must be removed first. Each is tried, whatever becomes of the "
     "others.",
     "skep archive --delete train train-archive", ARCHIVE_OPTIONS, run_archive},
    {"scale", "JOB ROLE N", KIND_JOB, NULL, 3, 3, "change the number of tasks of a role",
     "Changes how many tasks a role of a running job has. Only for jobs that are not placed as a "
     "gang.",
     "skep scale serve worker 4", NO_OPTIONS, run_scale},
    {"release", "[JOB…]", KIND_JOB, NULL, 0, -1, "let go containers held for debugging",
     "Removes the containers of failed tasks that were kept because the job asked for it.\n\n"
     "With --all or a filter instead of names: see skep stop; to those that failed.",
     NULL, BULK_OPTIONS, run_release},
    {"tag", "[JOB] TAG", KIND_JOB, NULL, 1, 2, "put a tag on a job",
     "Adds a tag, or takes it away. With --all or a filter instead of a name: see skep stop.", NULL,
     TAG_OPTIONS, run_tag},
    {"nodes", "", KIND_NONE, NULL, 0, 0, "list nodes",
     "Lists the machines of the cluster. The reason says why a node is not ready, or until when it "
     "is taken last because it refused tasks. The engine of each is shown with -o wide, or when "
     "they have more than one.",
     NULL, NO_OPTIONS, run_nodes},
    {"pardon", "NODE…", KIND_NONE, NULL, 1, -1, "forget the failures counted against nodes",
     "Failures of the platform count against the node on which they happened; a node with too many "
     "is taken last, then not at all (CORDONED in `skep nodes`). This forgets them, after a "
     "repair. "
     "For administrators.",
     "skep pardon node7", NO_OPTIONS, run_pardon},
    {"cordon", "NODE…", KIND_NONE, NULL, 1, -1, "have nothing started on nodes",
     "What runs there goes on. `skep nodes` shows who cordoned a node, when and why. For "
     "administrators.",
     "skep cordon --reason 'a disk is replaced' node7", NODE_OPTIONS, run_cordon},
    {"drain", "NODE…", KIND_NONE, NULL, 1, -1, "have nothing started on nodes, and end what runs",
     "As skep cordon. Besides, the tasks there are ended as by a preemption: they have their time "
     "for a checkpoint and start elsewhere, which no retry budget counts; a gang starts anew as a "
     "whole. Containers kept for debugging stay until they are released. For administrators.",
     "skep drain --reason 'a new kernel' node7", NODE_OPTIONS, run_drain},
    {"uncordon", "NODE…", KIND_NONE, NULL, 1, -1, "have nodes used again",
     "Undoes skep cordon and skep drain. What the platform cordoned for its failures needs skep "
     "pardon. For administrators.",
     "skep uncordon node7", NO_OPTIONS, run_uncordon},
    {"exits", "[CODE]", KIND_NONE, NULL, 0, 1, "show what exit codes mean",
     "Shows the table by which ends of tasks are judged: each code, its name, what it says about "
     "the "
     "cause and about another try, and whether the operator or the program has it so. With a "
     "code, that row; --output yaml also shows what to do about it.",
     "skep exits 137", NO_OPTIONS, run_exits},
    {"vc", "[NAME|close NAME…|open NAME…]", KIND_CHOICE, "close open", 0, -1,
     "show virtual clusters, close and open them",
     "Shows how many leaves of each SKU every virtual cluster owns and uses, and whether it is "
     "open; of one that is named, its cells as a tree, too, with the physical cells that they are "
     "bound to.\n\n"
     "`close NAME…` and `open NAME…` are for administrators. Nothing of a virtual cluster that is "
     "closed starts: what runs goes on, jobs that are submitted wait and say why. It stays closed "
     "over restarts of the server until it is opened.",
     "skep vc close --reason 'a course until Friday' vc1", CLUSTER_OPTIONS, run_vc},
    {"cells", "", KIND_NONE, NULL, 0, 0, "show the physical cells as a tree",
     "Shows the cells of the physical cluster as a tree: how many leaves below each are used, free "
     "and bad, their state, and for whom they are used. `skep vc NAME` shows a virtual cluster so.",
     NULL, NO_OPTIONS, run_cells},
    {"user", "ACTION [NAME…]", KIND_CHOICE, "list show add set remove activate deactivate import",
     1, -1, "show and change users",
     "`list` shows all users, `show NAME` one. The others are for administrators.\n\n"
     "`add NAME` makes a user; the password is asked for, or read from standard input. `set NAME` "
     "changes what the options name. `deactivate NAME…` revokes all tokens of users and lets them "
     "log in no more, until `activate NAME…`. `remove NAME…` removes users; deactivating is "
     "better: as long as jobs of a removed user are left, nobody else can have the name, and "
     "afterwards, where storages have a folder for each user, only with --reuse-name, because "
     "those "
     "of that user become the new one's: look at them first. An administrator cannot be removed, "
     "and the last one cannot be changed into an ordinary user.\n\n"
     "`import FILE` makes users of a file of comma-separated values. Its first line names the "
     "columns: username, password (or passwordHash: a hash as OpenPAI stored it), and, when they "
     "are wanted, email, admin (true or false), virtualCluster and groups (lists in quotes), "
     "quota.gpus or another quota, and extension (JSON). A line that is refused is named, and the "
     "others are still "
     "taken. Who is there already stays as they are and is named, so that a file can be imported "
     "again after a mistake in it is mended.",
     "skep user add alice --vc vision,speech", USER_OPTIONS, run_user},
    {"group", "ACTION [NAME…]", KIND_CHOICE, "list show members add set remove join leave", 1, -1,
     "show and change groups",
     "`list` shows all groups, `show NAME` one, `members NAME` who is in it. Members may use the "
     "virtual clusters of their groups; members of a group with --admin yes are "
     "administrators.\n\n"
     "For administrators: `add NAME`, `set NAME` (what is not named stays) and `remove NAME…`. For "
     "them and the group's own administrators: `join GROUP USER…` and `leave GROUP USER…`; with "
     "--admin yes, which only administrators may give, `join` makes the users administrators of "
     "the group, who say who is in it.",
     "skep group join vision alice bob", GROUP_OPTIONS, run_group},
    {"login", "[URL]", KIND_NONE, NULL, 0, 1, "log in to a server",
     "Asks for user name and password, and keeps the token that the server gives (the password is "
     "not kept) in ~/.config/skep/settings, readable by you alone.\n\n"
     "With --oidc you log in at the provider of the server's OpenID Connect. The page is printed, "
     "and opened by $BROWSER, or by xdg-open where there is a screen; it must be a browser of this "
     "machine, as it brings the answer to a port of 127.0.0.1. With --device any browser will do, "
     "on a telephone for example: the provider asks there for the code that is printed here, where "
     "it offers that.\n\n"
     "URL is http://HOST:PORT, https://HOST:PORT or unix:/PATH. Of an https server for whose "
     "certificate nobody vouches, the fingerprint is shown, which skepd's log names as well; once "
     "trusted it is kept, and no other is accepted. On the server's machine, root needs no login: "
     "the socket " PATH_API_SOCKET " is used, and the kernel tells who asks.\n\n"
     "With --client-certificate (and no --username) a server that knows your certificate asks for "
     "no "
     "password: the files are kept as part of the login, and shown with each command.\n\n"
     "The login is kept as the context that --context names: a name for the server, the user and "
     "the token. Without it, it is that of the server, or a new one of the server's host. It is "
     "the current one from then on; skep context chooses another.",
     "skep login http://127.0.0.1:9186", LOGIN_OPTIONS, run_login},
    {"logout", "", KIND_NONE, NULL, 0, 0, "revoke the token and forget it",
     "Revokes the token at the server and removes it from the settings.", NULL, NO_OPTIONS,
     run_logout},
    {"context", "[list|use NAME|rename NAME NEW|delete NAME]", KIND_CHOICE,
     "list use rename delete", 0, 3, "choose among the servers logged in to",
     "A context is one login: a server, the user there and the token, under a name. One is the "
     "current one, whose server is meant when neither --server nor SKEP_SERVER, --context nor "
     "SKEP_CONTEXT says otherwise; skep login makes it so.\n\n"
     "list shows all (without their tokens), use makes another the current one, rename gives a new "
     "name, delete revokes the token and forgets the context. At most 64 are kept.",
     "skep --context lab list", NO_OPTIONS, run_context},
    {"whoami", "", KIND_NONE, NULL, 0, 0, "show who is logged in",
     "Shows whose token it is that skep uses, as the server sees it.", NULL, NO_OPTIONS,
     run_whoami},
    {"token", "ACTION [ID…]", KIND_CHOICE, "list create revoke", 1, -1,
     "show, make and revoke tokens",
     "`list` shows your tokens, `create` makes one for a program and prints it, `revoke ID…` "
     "revokes some, which takes effect at once.\n\n"
     "A token of scope read reads what you may read, and nothing of what you may do as an "
     "administrator; submit also submits jobs and changes yours; usual (the default) is good for "
     "all that you may do but for users, groups and tokens; admin only lacks tokens.",
     "skep token create --scope submit --expires 2592000", TOKEN_OPTIONS, run_token},
    {"audit", "", KIND_NONE, NULL, 0, 0, "show who changed what",
     "Shows the audit records, the newest first: who asked for a change, when and from where, what "
     "it was about, and what became of it. With -o wide also the token, the right that was asked "
     "for, and what users, groups and tokens were before and after. For administrators.\n\n"
     "A time is a day such as 2026-11-22, a time of a day such as \"2026-11-22 09:30\", or so long "
     "ago: 30m, 2h, 7d.",
     "skep audit --since 7d --subject alice -o wide", AUDIT_OPTIONS, run_audit},
    {"alerts", "", KIND_NONE, NULL, 0, 0, "show what needs attention, and since when",
     "Shows what is wrong now, the newest first: nodes that are not ready or closed, GPUs with "
     "errors, the server's own checks, jobs whose tasks stand still. Administrators see all; "
     "others see what is about their own jobs.",
     "skep alerts --all", ALERTS_OPTIONS, run_alerts},
    {"quota", "[ACTION [NAME [QUOTA…]]]", KIND_CHOICE, "show set unset", 0, -1,
     "show and change how much users may have and do",
     "Shows your own quotas and what of them is used, or those of NAME. For administrators: "
     "`set NAME QUOTA=NUMBER…` and `unset NAME QUOTA…`. A user's own quota counts; without one, "
     "the largest of those of the user's groups.\n\n"
     "liveJobs: jobs that have not ended. gpus: GPUs of these. storedJobs: jobs, ended ones too. "
     "submitsPerMinute: submissions and starts. requestsPerSecond: of the API. streams: logs, "
     "events and changes that are followed. gpuHoursPerMonth: GPUs times the hours that tasks ran "
     "with them in this calendar month (UTC). keptJobs: ended jobs; when the database is too "
     "large, "
     "those of users who have more of them than that go first.",
     "skep quota set alice liveJobs=20 gpus=8", QUOTA_OPTIONS, run_quota},
    {"request", "ACTION [NAME…]", KIND_CHOICE, "list ask withdraw account accept refuse", 1, -1,
     "ask administrators for a virtual cluster or an account",
     "`ask VC` asks for the right to use a virtual cluster, `list` shows what you have asked for "
     "and "
     "what became of it, and `withdraw REQUEST…` takes back what is open.\n\n"
     "`account NAME` asks for an account, where the server takes such requests; nobody needs to be "
     "logged in. The password is asked for, or read from standard input. The account is there when "
     "an administrator has accepted; then log in.\n\n"
     "For administrators: `list` shows the requests of all, `accept REQUEST…` grants what they ask "
     "for, and `refuse REQUEST…` says why not with --reason. A virtual cluster is granted to the "
     "user alone, or with --group by a group that grants it. A decision is never changed. Decided "
     "requests are kept for 30 days.",
     "skep request ask --reason 'a course' vc1", REQUEST_OPTIONS, run_request},
    {"template", "ACTION [NAME…]", KIND_CHOICE,
     "list show get save remove approve reject star unstar versions restore official unofficial", 1,
     -1, "keep job files as templates, and share them",
     "`list` shows your templates and those that others share, `show NAME` one, and `get NAME` "
     "prints its job file. NAME is your own one's, AUTHOR~NAME another's, or an id.\n\n"
     "`save NAME FILE` keeps a job file; one of this name is replaced, and what no option names "
     "stays as it was. The values of its secrets are masked. With --share public everyone sees it "
     "once an administrator has approved it, and again after each change; with the names of groups "
     "their members see it at once. `remove NAME…` removes some, `star` and `unstar` mark them.\n\n"
     "The newest ten versions of a template are kept: `versions NAME` lists them, `get NAME "
     "--version N` prints the job file of one, and `restore NAME --version N` makes it the newest "
     "one again. These are for its author and administrators.\n\n"
     "For administrators: `approve NAME…`, `reject NAME…` with --reason, and `official NAME…` and "
     "`unofficial NAME…` of what is approved. A change by its author takes both away.",
     "skep template save mnist train.yaml --tag vision,small --share public", TEMPLATE_OPTIONS,
     run_template},
    {"storage", "ACTION [NAME…]", KIND_CHOICE, "ls get put mkdir rm mv", 1, -1,
     "read and write files of storages",
     "`ls` shows the storages that your jobs can have mounted, `ls STORAGE/FOLDER` what is in one. "
     "`get STORAGE/PATH [FILE]` fetches a file (`-` is standard output), `put FILE STORAGE/PATH` "
     "brings one there, and `put FILE… STORAGE/FOLDER/` several. `mkdir STORAGE/FOLDER` makes a "
     "folder, `rm STORAGE/PATH…` removes files and empty folders, and "
     "`mv STORAGE/PATH STORAGE/PATH` renames one. `put -r` and `get -r` take folders: links and "
     "what "
     "else is no plain file are left out and named, and one failure does not keep the others "
     "out.\n\n"
     "PATH is below what a job sees of the storage: your own folder where each user has one. A "
     "file "
     "is there when all of it has come, and nothing is replaced without --replace.",
     "skep storage put train.py home/code/", STORAGE_OPTIONS, run_storage},
    {"admin", "ACTION", KIND_CHOICE, "check log settings storages", 1, 2,
     "look after a server and its machine",
     "`settings` shows the server's configuration as it counts now: every key, its value, and "
     "where that comes from, with -o wide also what it is for. Passwords are masked. For "
     "administrators.\n\n"
     "`storages` shows how each storage is: whether its folder is there and can be written to, the "
     "size of its disk and what is free of it, and how many jobs run with it. For "
     "administrators.\n\n"
     "`log` shows the newest lines of the server's own log, of which it keeps 2,000 in memory; "
     "--level leaves out what is less important, and --follow goes on until Ctrl-C. For "
     "administrators.\n\n"
     "`check` says what the machine on which it runs can give to the walls between tasks, and what "
     "it cannot: kernel, control groups, quotas, file systems, programs. No server is needed; some "
     "of it only root can try.\n\n"
     "With --config also what the server's configuration wants of that: its modes of networks, "
     "user "
     "ids and disks, each storage, and what the rights that it gives cost. Whether the file is "
     "right "
     "skepd --check says.\n\n"
     "good: nothing is lacking. less: tasks run, with one wall less or at a higher price, and the "
     "meaning says which. missing: no task can run. unknown: this user cannot try it.\n\n"
     "Exit code 0: tasks can run, 1: something is missing.",
     "sudo skep admin check --config /etc/skep/skepd.yaml", ADMIN_OPTIONS, run_admin},
    {"kube", "ACTION", KIND_CHOICE, "check", 1, 1, "look at a Kubernetes cluster",
     "`check` says what a cluster lacks before Skep is installed in it: whether it is reached, its "
     "version and clock, the rights of Skep's account, the namespace and what its Pod Security "
     "level lets in, the nodes that fit and their GPUs, the kubelets, whether metrics-server tells "
     "what nodes use, and a storage class for skepd's own volume. Nothing is changed in the "
     "cluster: a pod is only tried (dryRun).\n\n"
     "It asks as whom the kubeconfig names. With --account the rights of that service account are "
     "looked at (an administrator may ask that). Some of it only an administrator can see: asked "
     "as Skep's own account it is unknown.\n\n"
     "good: nothing is lacking. less: tasks run, and the meaning says what does not. missing: no "
     "task can run, or not those that are meant. unknown: who asks may not see it.\n\n"
     "Exit code 0: nothing is missing, 1: something is, 2: wrong command line or configuration.",
     "skep kube check --account skep/skep --node-selector skep=yes --gpus device-plugin",
     KUBE_OPTIONS, run_kube},
    {"import", "openpai FOLDER", KIND_CHOICE, "openpai", 2, 2,
     "turn another platform's configuration into Skep's",
     "Reads services-configuration.yaml and, where they are, layout.yaml and config.yaml of an "
     "OpenPAI cluster in FOLDER, with its users (users.json), groups (groups.json) and storages "
     "(volumes.yaml), and writes into a new folder: skepd.yaml, cells.yaml (HiveD's configuration "
     "as it was), groups.sh, which makes the groups, nodes.sh, which prepares the nodes, "
     "claims.yaml with the storages, users.csv, and report.txt. The report, which is printed as "
     "well, says of each setting what became of it: taken, to do, or left out "
     "and why. No server is needed, and nothing is changed but the new folder.",
     "skep import openpai ~/cluster-configuration --to /etc/skep/openpai", IMPORT_OPTIONS,
     run_import},
    {"completion", "SHELL", KIND_CHOICE, "bash zsh fish", 1, 1, "print completion for a shell",
     "Prints a script that completes commands, options and names of jobs.",
     "source <(skep completion bash)", NO_OPTIONS, run_completion},
    {"man", "[COMMAND]", KIND_COMMAND, NULL, 0, 1, "print a man page",
     "Prints the man page of skep or of one command in roff, as it is installed.",
     "skep man submit | man -l -", NO_OPTIONS, run_man},
    {"version", "", KIND_NONE, NULL, 0, 0, "print the version", "Prints the version of skep.", NULL,
     NO_OPTIONS, run_version},
    {"help", "[COMMAND]", KIND_COMMAND, NULL, 0, 1, "show help",
     "Shows help of skep or one command.", NULL, NO_OPTIONS, run_help},
};
const size_t COMMAND_COUNT = COUNT_OF(COMMANDS);

const struct cli_command *command_find(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(COMMANDS[i].name, name) == 0)
            return &COMMANDS[i];
    return NULL;
}
