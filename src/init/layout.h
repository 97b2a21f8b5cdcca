/* layout.h — what a container holds for skep-init: the contract between the server that writes it,
 * the engine that mounts it, and skep-init that lives in it (docs/rfc/0009-skep-init.md).
 *
 * Inside every container:
 *   /skep            read-only: the engine's files of this attempt
 *   /skep/init       the program skep-init, the container's first process, without arguments
 *   /skep/job        job_file.h, one content for all tasks of a job attempt
 *   /skep/task       task_file.h, this task's own; holds secrets: mode 0400
 *   /skep/log        writable by the image's user: log segments
 *   /skep/run        writable by the image's user: exit report, stop reason
 *   /skep/network    the task's address where its job, or the task itself, has a network of its
 * own; else not there /skep/peers      empty; where it is, each task has an address of its own:
 * those of the others come later, into /skep/run/addresses (address_file.h) /dev/termination-log in
 * a pod: a file that kubelet mounts; gets what /skep/run/exit gets /skep/relay      empty; where it
 * is, the container's own output gets all logs (log_line.h) /skep/door       read-only: sockets of
 * the server, where the engine is on its machine /skep/private    in memory, of the image's user
 * alone, gone with the container: what holds secrets (scripts of the commands, the job's ssh key);
 * without it /skep/run
 *
 * `/skep/init enter …` starts a program beside the task's own (enter.c); `/skep/init beside …`
 * becomes one, where the engine cannot be at the other end of a socket (beside.c); `/skep/init
 * fetch …` tells what is missing of the logs (fetch.c); `/skep/init reason …` says why the task is
 * about to be ended (reason.c); `/skep/init addresses …` where its peers are (addresses.c).
 *
 * The engine starts /skep/init as the image's user, with the image's environment and working
 * directory. Log segments are STREAM.OFFSET, the offset of their first byte since the start of the
 * attempt in 15 decimal digits ("all.000000000000000"): a reader finds the segment of any offset by
 * name, and needs no other file. The newest segment is the one written to. /skep/log/times says
 * which offset belongs to which time (log_times.h).
 */
#ifndef INIT_LAYOUT_H
#define INIT_LAYOUT_H

#define LAYOUT_INIT    "/skep/init"
#define LAYOUT_JOB     "/skep/job"
#define LAYOUT_TASK    "/skep/task"
#define LAYOUT_LOG     "/skep/log"
#define LAYOUT_RUN     "/skep/run"
#define LAYOUT_PRIVATE "/skep/private"
#define LAYOUT_DOOR    "/skep/door"

/* `/skep/init enter TERMINAL COMMAND…`: TERMINAL is "-", or ROWSxCOLUMNS and $TERM joined by ':'.
 * The descriptor is one end of a pair of SOCK_SEQPACKET: skep-init tells by it what becomes of the
 * program, one byte a message, and ends the program when the other end is closed. */
#define LAYOUT_ENTER "enter"
enum {
    LAYOUT_ENTER_FD = 3,
    LAYOUT_ENTER_STARTED = 'S', /* the terminal's master comes with it */
    LAYOUT_ENTER_EXITED = 'X',  /* a second byte is the exit code */
    LAYOUT_ENTER_ENDING = 'E',  /* the task is told to end, and so is the program */
};

/* `/skep/init beside TERM COMMAND…`: TERM is "-", or $TERM; without a command the image's shell. */
#define LAYOUT_BESIDE "beside"

/* `/skep/init fetch /skep OUT ERR ALL RUNTIME`: how much of each stream is known. */
#define LAYOUT_FETCH "fetch"

/* `/skep/init reason /skep WORD GRACE_MS`: writes LAYOUT_REASON_NAME, where the engine cannot. */
#define LAYOUT_REASON "reason"

/* `/skep/init addresses /skep`: writes what comes by its standard input as LAYOUT_ADDRESSES_NAME,
 * once. */
#define LAYOUT_ADDRESSES "addresses"

/* names in /skep, for `struct engine_file` */
#define LAYOUT_JOB_NAME     "job"
#define LAYOUT_TASK_NAME    "task"
#define LAYOUT_NETWORK_NAME "network"
#define LAYOUT_PEERS_NAME   "peers"
#define LAYOUT_RELAY_NAME   "relay"

/* in /skep/door: the API, for what tasks ask */
#define LAYOUT_DOOR_API_NAME "api"

/* in /skep/run */
#define LAYOUT_EXIT_NAME      "exit"      /* exit_file.h, written by skep-init before it ends */
#define LAYOUT_REASON_NAME    "reason"    /* exit_file.h, written by the engine before SIGTERM */
#define LAYOUT_STARTED_NAME   "started"   /* empty; made when the user's command is about to run */
#define LAYOUT_ADDRESSES_NAME "addresses" /* address_file.h, written by `skep-init addresses` */
/* Beside /skep/relay: a pipe by which skep-init hears that its logs are fetched. */
#define LAYOUT_TAKEN_NAME "taken"
enum {
    LAYOUT_TAKEN_SOME = 's', /* somebody does it now */
    LAYOUT_TAKEN_ALL = 'a',  /* the logs have ended, and all of them are where they are kept */
};

/* streams in /skep/log; the format of a segment's name */
#define LAYOUT_STREAMS                                                                             \
    {                                                                                              \
        "stdout", "stderr", "all", "runtime"                                                       \
    }
#define LAYOUT_SEGMENT_FORMAT "%s.%015llu"

enum {
    LAYOUT_PRIVATE_MIB = 16,          /* the task file has 8 at most */
    LAYOUT_SEGMENT_BYTES = 256 << 20, /* default; the task file may say less */
    LAYOUT_SEGMENTS_KEPT = 2,         /* the older ones are removed */
};

#endif
