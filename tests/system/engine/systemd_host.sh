# Run as a service in the virtual machine of systemd_host.py: /bin/sh /test.sh v2|hybrid|v1
# Every line "ok: …" or "FAILED: …" is one check; "RESULT 0" says that all held.
export PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin
kind=$1
code=0
image=dir:/var/lib/skep/images/busybox
sh /report.sh /dev/console &
seconds() { cut -d' ' -f1 /proc/uptime; }

check() { # check WHAT COMMAND…
    what=$1
    shift
    if "$@"; then
        echo "ok: $what ($(seconds) s)"
    else
        echo "FAILED: $what: $*"
        code=1
        return 1
    fi
}

need() { # need WHAT COMMAND…: without it all else makes no sense
    check "$@" || finish
}

finish() {
    if [ $code != 0 ]; then
        skep list
        journalctl --no-pager -u skepd | tail -60
    fi
    echo "RESULT $code"
    sync
    poweroff -f
}

await() { # await COMMAND…: until it holds, at most four minutes of a virtual machine beside others
    due_s="$(($(seconds | cut -d. -f1) + 240))"
    until "$@"; do
        [ "$(seconds | cut -d. -f1)" -lt "$due_s" ] || return 1
        sleep 0.5 # to look again takes longer here than most of what is waited for
    done
}

same() { [ "$1" = "$2" ] || { echo "  '$1' is not '$2'"; return 1; }; }
says() { # says PATTERN COMMAND…
    pattern=$1
    shift
    "$@" >/tmp/said 2>&1
    grep -q -e "$pattern" /tmp/said || { sed 's/^/  /' /tmp/said; return 1; }
}

main_pid() { systemctl show -p MainPID --value skepd; }
log_says() { skep logs "$2" 2>/dev/null | grep -q "$1"; }
# The newest attempt of a job's task INDEX, and its first process.
attempt_of() { # attempt_of JOB
    grep -l "\"admin~$1\"" /run/skep/*/tasks/*/config.json | sed 's,.*/tasks/\([0-9]*\)/.*,\1,' | sort -n | tail -1
}
init_of() { cat /run/skep/*/tasks/"$(attempt_of "$1")"/init.pid; }
monitor_of() { cat /run/skep/*/tasks/"$(attempt_of "$1")"/conmon.pid; }
group_of() { # group_of JOB CONTROLLER
    case $kind in
    v2) echo /sys/fs/cgroup/skep/*/"$(attempt_of "$1")" ;;
    *) echo /sys/fs/cgroup/"$2"/skep/*/"$(attempt_of "$1")" ;;
    esac
}
memory_limit() {
    case $kind in
    v2) cat "$(group_of "$1" memory)/memory.max" ;;
    *) cat "$(group_of "$1" memory)/memory.limit_in_bytes" ;;
    esac
}
cpu_limit() {
    case $kind in
    v2) cat "$(group_of "$1" cpu)/cpu.max" ;;
    *) echo "$(cat "$(group_of "$1" cpu)/cpu.cfs_quota_us") $(cat "$(group_of "$1" cpu)/cpu.cfs_period_us")" ;;
    esac
}
limits_hold() { same "$(memory_limit "$1")" 67108864 && same "$(cpu_limit "$1")" "200000 100000"; }
is_alive() { kill -0 "$1" 2>/dev/null; }
score_of() { cat "/proc/$1/oom_score_adj"; }
unit_of() { grep -E '^0::|name=systemd' "/proc/$1/cgroup" | sed 's/.*://' | sort | tail -1; }
is_beside_units() { case $(unit_of "$1") in /skep/*) ;; *) unit_of "$1"; false ;; esac; }
go() { touch "/proc/$(init_of "$1")/root/tmp/go"; }
waits='echo begun; i=0; while [ ! -e /tmp/go ]; do sleep 0.2; done; echo whole'
submit() { # submit NAME COMMAND [OPTION…]
    name=$1 command=$2
    shift 2
    skep run --detach --name "$name" --image $image --cpu 2 --memory 64 --shm 8 "$@" "$command" >/dev/null
}

# --- installed as docs/operator/install.md says ---
echo "systemd $(systemctl --version | head -1), $(stat -f -c %T /sys/fs/cgroup) on /sys/fs/cgroup, up for $(seconds) s"
systemctl enable --now skepd
check "the service is up when systemctl says so" says '"\?ready"\?\|ok' wget -q -O - http://127.0.0.1:9186/readyz
check "it is enabled" same "$(systemctl is-enabled skepd)" enabled
need "log in" sh -c 'skep login --username admin --password-stdin <"/var/lib/skep/admin-password"'
systemctl status --no-pager -l skepd | grep 'containers by'

# --- a job with limits ---
need "a job" submit first "$waits"
need "it runs" await log_says begun first
check "its limits are in force" limits_hold first
first=$(init_of first) monitor=$(monitor_of first)
check "the task is beside systemd's units" is_beside_units "$first"
check "so is its monitor" is_beside_units "$monitor"
check "skepd is in its unit" same "$(unit_of "$(main_pid)")" /system.slice/skepd.service

# --- what is killed when the machine's memory runs out ---
check "skepd is protected" same "$(score_of "$(main_pid)")" -500
check "the monitor is protected" [ "$(score_of "$monitor")" -le -500 ]
check "the task is not" same "$(score_of "$first")" 0

# --- what systemd does meanwhile changes nothing ---
systemctl daemon-reload
systemctl daemon-reexec
systemd-run --quiet -p Type=oneshot -p CPUQuota=50% -p MemoryMax=100M -p TasksMax=50 true
systemctl set-property --runtime system.slice CPUWeight=200
systemctl revert system.slice
check "limits after systemd's own changes of control groups" limits_hold first
check "a new job has limits, too" submit second "$waits"
check "it runs" await log_says begun second
check "its limits are in force" limits_hold second
go second
check "it ends well" skep wait --quiet --timeout 240 second

# --- restart ---
before=$(main_pid)
check "restart" systemctl restart skepd
check "it is another process" [ "$(main_pid)" != "$before" ]
check "the job went on" is_alive "$first"
check "its monitor, too" is_alive "$monitor"
check "it was adopted, not begun anew" same "$(init_of first)" "$first"
check "its limits are in force" limits_hold first
before=$(main_pid)
kill -9 "$before"
other_pid() { [ "$(main_pid)" != "$before" ] && [ "$(main_pid)" != 0 ] && systemctl is-active -q skepd; }
check "systemd starts it again after a crash" await other_pid
check "the job went on" is_alive "$first"
go first
check "it ends well" skep wait --quiet --timeout 240 first
check "its log is whole" same "$(skep logs first | tr '\n' ' ')" "begun whole "

# --- out of its own memory ---
check "a job that takes too much" submit greedy 'x=a; while :; do x=$x$x$x$x; done'
skep wait --quiet --timeout 240 greedy
check "it was killed for its own limit" says 'DockerOOMKilled' skep describe --attempts greedy
check "the service did not mind" systemctl is-active -q skepd

# --- stop, while a job runs and another one ends ---
check "two jobs" submit third "$waits"
check "two jobs" submit fourth "$waits; exit 7"
check "they run" await log_says begun third
check "they run" await log_says begun fourth
third=$(init_of third) fourth=$(init_of fourth)
check "stop" systemctl stop skepd
check "the service is down" same "$(systemctl is-active skepd)" inactive
check "nothing of the unit is left" [ ! -s /sys/fs/cgroup/system.slice/skepd.service/cgroup.procs ]
check "the tasks go on" is_alive "$third"
touch "/proc/$fourth/root/tmp/go"
is_gone() { ! is_alive "$1"; }
check "one ends while nobody looks" await is_gone "$fourth"
check "start" systemctl start skepd
skep wait --quiet --timeout 240 fourth
check "its exit code is known" same $? 7
check "the other was adopted" same "$(init_of third)" "$third"

# --- the machine's memory runs out: three tasks within their limits take more than there is ---
# Who is to blame is read from the controller of memory, which is of v1 with a v2 tree beside it and without.
if [ "$kind" != hybrid ]; then
pid=$(main_pid)
restarts=$(systemctl show -p NRestarts --value skepd)
third_monitor=$(monitor_of third)
hog='BEGIN { x = sprintf("%65536s", 0); while (1) a[n++] = x }'
if [ "$kind" = v2 ]; then # where systemd hears of it: one of skepd's helpers, such as a pull, is killed first
    sh -c 'echo $$ >/sys/fs/cgroup/system.slice/skepd.service/cgroup.procs && echo 1000 >/proc/self/oom_score_adj &&
        exec awk "$1"' sh "$hog"
    check "a helper is killed for memory" same $? 137
    heard() { journalctl --no-pager -u skepd | grep -q 'killed by the OOM killer'; }
    check "systemd hears of it" await heard
    check "and lets skepd run" same "$(main_pid) $(systemctl is-active skepd)" "$pid active"
fi
check "a job that takes the machine's memory" submit flood \
    "[ \$SKEP_JOB_ATTEMPT = 0 ] || exit 0; awk '$hog'" --memory 2048 --instances 3
skep wait --quiet --timeout 240 flood
check "its tasks were tried again, and ended well" same $? 0
check "its story says why" says 'NodeOutOfMemory' skep events flood
grep -i outofmemory /tmp/said | head -3
check "the kernel killed tasks" says 'Out of memory: Killed process.*(awk)' dmesg
check "and nothing else" same "$(dmesg | grep 'Out of memory: Killed' | grep -v '(awk)')" ""
check "skepd is the same process" same "$(main_pid)" "$pid"
check "systemd did not start it again" same "$(systemctl show -p NRestarts --value skepd)" "$restarts"
check "the other job's task goes on" is_alive "$third"
check "and its monitor" is_alive "$third_monitor"
check "skepd answers" says skep-vm skep nodes
fi
go third
check "the other job ends well" skep wait --quiet --timeout 240 third
check "a new job runs" same "$(skep run --image $image --memory 64 --shm 8 'echo after all')" "after all"

# --- without systemd's unit skepd protects itself, whatever the control groups are ---
if [ "$kind" = v2 ]; then
/usr/local/bin/skepd --data /var/lib/other --listen 127.0.0.1:9999 --password-file /root/other >/root/other.log 2>&1 &
other=$!
check "one started by hand" await sh -c 'grep -q "is ready" /root/other.log'
check "it protects itself" same "$(score_of $other)" -500
kill $other
wait $other
fi

# --- as docs/operator/install.md says: end everything on the machine ---
check "a last job" submit last "$waits"
check "it runs" await log_says begun last
last=$(init_of last)
skep stop last >/dev/null
skep wait --quiet --timeout 240 last
check "it is stopped" same $? 130
check "its process is gone" is_gone "$last"
check "stop" systemctl stop skepd
check "nothing is left" same "$(pidof conmon)" ""
check "no group of a task is left" same "$(find /sys/fs/cgroup -path '*/skep/*' -name '[0-9]*' -type d -maxdepth 4 | grep -E '/skep/[0-9a-f]+/[0-9]+$')" ""

finish
