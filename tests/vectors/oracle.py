#!/usr/bin/env python3
"""Cases for the drivers of vectors, worked out here by a second, independent reading of the rules.

usage: oracle.py DRIVERS

Writes files in the form of the vectors for whole grids of inputs, runs the drivers on them and
prints one line a family. Exit 1 when a case failed.
"""

import itertools
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

from oracle_environment import environment

TRANSIENT, CONFLICT, PERMANENT = "Transient", "Conflict", "Permanent"
NEVER = {-210, -220, -230}
ENDS = [
    (0, "Succeeded", []),
    (1, "Failed", []),
    (255, "Failed", []),
    (200, "Failed", [TRANSIENT]),
    (201, "Failed", [TRANSIENT, CONFLICT]),
    (210, "Failed", [PERMANENT]),
    (-100, "Failed", [TRANSIENT]),
    (-101, "Failed", [TRANSIENT]),
    (-110, "Failed", [TRANSIENT]),
    (-111, "Failed", [TRANSIENT]),
    (-200, "Failed", [PERMANENT]),
    (-210, "Failed", [PERMANENT]),
    (-220, "Failed", [PERMANENT]),
    (-230, "Failed", [PERMANENT]),
    (-300, "Failed", []),
    (-310, "Failed", []),
    (-1000, "Failed", [TRANSIENT]),
    (-1200, "Failed", [PERMANENT]),
    (137, "Failed", [TRANSIENT]),
]


def completion(end):
    return {"code": end[0], "outcome": end[1], "attributes": end[2]}


def policy(fancy, most):
    return {"fancyRetryPolicy": fancy, "maxRetryCount": most}


def decide(fancy, most, counted, end):
    """-> retried?, counted?, after a back-off?"""
    code, outcome, attributes = end
    failed = outcome == "Failed"
    if code in NEVER:
        return False, False, False
    if fancy and failed and TRANSIENT in attributes:
        return True, False, CONFLICT in attributes
    if fancy and failed and PERMANENT in attributes:
        return False, False, False
    if most == -2 or (failed and (most == -1 or counted < most)):
        return True, True, False
    return False, False, False


def retry_decision():
    vectors = []
    grid = itertools.product([False, True], [-2, -1, 0, 1, 2, 3, 1000], [0, 1, 2, 3, 999, 1000], ENDS)
    for fancy, most, counted, end in grid:
        retried, counts, backs_off = decide(fancy, most, counted, end)
        vectors.append(
            {
                "id": f"{'fancy' if fancy else 'plain'}/{most}/{counted}/{end[0]}",
                "policy": policy(fancy, most),
                "accountableRetriedCount": counted,
                "completion": completion(end),
                "expect": {
                    "retry": retried,
                    "countsAsAccountable": counts if retried else None,
                    "delay": ("conflictBackoff" if backs_off else 0) if retried else None,
                },
            }
        )
    return {"vectors": vectors}


def attempt_sequence(chance):
    vectors = []
    for number in range(600):
        level = chance.choice(["framework", "task"])
        fancy, most = chance.choice([False, True]), chance.choice([-2, -1, 0, 1, 2, 3])
        ends = [chance.choice(ENDS) for _ in range(chance.randint(1, 7))]
        counted = total = backoffs = 0
        ids, final = [], None
        for end in ends:
            if final:
                break
            ids.append(total)
            retried, counts, backs_off = decide(fancy, most, counted, end)
            if not retried:
                final = end
                continue
            total, counted = total + 1, counted + counts
            backoffs += backs_off and level == "framework"
        vectors.append(
            {
                "id": f"sequence-{number}",
                "level": level,
                "policy": policy(fancy, most),
                "attempts": [completion(end) for end in ends],
                "expect": {
                    "completed": final is not None,
                    "finalCode": final[0] if final else None,
                    "finalOutcome": final[1] if final else None,
                    "totalRetriedCount": total,
                    "accountableRetriedCount": counted,
                    "attemptIds": ids,
                    "backoffRetries": backoffs,
                },
            }
        )
    return {"vectors": vectors}


def completion_policy(chance):
    vectors = []
    for number in range(600):
        roles = [
            {
                "name": "abc"[r],
                "taskNumber": chance.choice([0, 1, 1, 2, 3, 5]),
                "minFailedTaskCount": chance.choice([-1, 0, 1, 1, 2, 3, 9]),
                "minSucceededTaskCount": chance.choice([-1, -1, 0, 1, 2, 3, 9]),
            }
            for r in range(chance.randint(1, 3))
        ]
        tasks = [(role, i) for role in roles for i in range(role["taskNumber"])]
        chance.shuffle(tasks)
        decision, done, expect, given = None, 0, [], []
        counts = {role["name"]: [0, 0] for role in roles}
        for role, index in tasks:
            if decision:
                break
            code = chance.choice([0, 0, 1, 2, 137, 255, -101, -1000])
            given.append({"taskRole": role["name"], "taskIndex": index, "code": code})
            done += 1
            trigger = {"taskRole": role["name"], "taskIndex": index}
            count = counts[role["name"]]
            count[code != 0] += 1
            if code != 0 and count[1] >= role["minFailedTaskCount"] >= 1:
                decision = ("Failed", code, True)
            elif code == 0 and count[0] >= role["minSucceededTaskCount"] >= 1:
                decision = ("Succeeded", 0, True)
            elif done == len(tasks):
                decision = ("Succeeded", 0, False)
            expect.append(
                decision
                and {
                    "outcome": decision[0],
                    "code": decision[1],
                    "inheritedFromTask": decision[2],
                    "trigger": trigger,
                }
            )
        vectors.append(
            {
                "id": f"policy-{number}",
                "taskRoles": roles,
                "finalTaskCompletions": given,
                "expectAfterEach": expect,
            }
        )
    return {"vectors": vectors}


# ---- classification ----

PREDEFINED = [
    (200, "ContainerTransientFailed", [TRANSIENT]),
    (201, "ContainerTransientConflictFailed", [TRANSIENT, CONFLICT]),
    (210, "ContainerPermanentFailed", [PERMANENT]),
]


def any_container(low, high=None, reason=None, message=None, name=None, signal=None):
    pattern = {"codeRange": {"min": low}}
    if low is None:
        pattern = {}
    if high is not None:
        pattern["codeRange"]["max"] = high
    for key, value in (("reasonRegex", reason), ("messageRegex", message), ("nameRegex", name)):
        if value:
            pattern[key] = value
    if signal:
        pattern["signalRange"] = {"min": signal, "max": signal}
    return pattern


RULES = [
    (-1000, "Evicted", [TRANSIENT], [{"reasonRegex": "(?i)^Evicted$"}]),
    (-1002, "OutOf", [TRANSIENT], [{"reasonRegex": r"(?i)^OutOf\S+$", "messageRegex": "(?ms).*"}]),
    (-1010, "Disk", [PERMANENT], [{"messageRegex": "(?i)disk.*full"}]),
    (-1200, "Oom", [PERMANENT], [{"containers": [any_container(1, None, "(?i)^OOMKilled$")]}]),
    (-1203, "NotFound", [PERMANENT], [
        {"containers": [any_container(127, 127, "(?i)^ContainerCannotRun$")]},
        {"containers": [any_container(128, 128, "(?i)^ContainerCannotRun$", "(?msi).*(not found|no such).*")]},
    ]),
    (-1204, "StartUnknown", [], [{"containers": [any_container(128, 128, "(?i)^ContainerCannotRun$")]}]),
    (-1300, "Sidecar", [TRANSIENT], [{"containers": [any_container(None, None, None, None, "^side$"), any_container(3, 5, None, None, "^main$")]}]),
    (-1301, "Signalled", [TRANSIENT], [{"containers": [any_container(None, None, None, None, None, 9)]}]),
    (-1302, "Zero", [], [{"reasonRegex": "^Zero$", "containers": [any_container(0, 0)]}]),
    (137, "Kill", [TRANSIENT], [{"containers": [any_container(137, 137)]}]),
    (139, "Segv", [PERMANENT], [{"containers": [any_container(139, 139)]}]),
]


def matches_container(pattern, container):
    code_range = {"min": 1, **pattern.get("codeRange", {})}
    signal_range = pattern.get("signalRange", {})
    code, signal = container["exitCode"], container["signal"]
    if code is None or code < code_range["min"] or code > code_range.get("max", code):
        return False
    if signal < signal_range.get("min", signal) or signal > signal_range.get("max", signal):
        return False
    return all(
        re.search(pattern.get(key + "Regex", ""), container[key])
        for key in ("name", "reason", "message")
    )


def matches(pattern, pod, containers):
    return all(
        re.search(pattern.get(key + "Regex", ""), pod[key]) for key in ("reason", "message")
    ) and all(
        any(matches_container(one, container) for container in containers)
        for one in pattern.get("containers", [])
    )


def classify(pod, has_rules):
    containers = pod["initContainers"] + pod["containers"]
    for code, phrase, attributes in PREDEFINED:
        if any(container["exitCode"] == code for container in containers):
            return code, phrase, attributes
    for code, phrase, attributes, patterns in RULES if has_rules else []:
        if any(matches(pattern, pod, containers) for pattern in patterns):
            return code, phrase, attributes
    last = None
    for container in containers:
        if container["exitCode"] and (not last or last["finishedAt"] < container["finishedAt"]):
            last = container
    if last:
        return last["exitCode"], "ContainerUnrecognizedFailed", []
    return -300, "PodFailedWithoutFailedContainer", []


def some_container(chance):
    code = chance.choice([None, 0, 1, 3, 5, 127, 128, 137, 139, 199, 200, 201, 210, 255, -1])
    return {
        "name": chance.choice(["main", "side", "init"]),
        "exitCode": code,
        "finishedAt": chance.randint(0, 4),
        "reason": chance.choice(["", "Error", "OOMKilled", "oomkilled", "ContainerCannotRun"]),
        "message": chance.choice(["", "two\nlines: No such file", "executable Not Found", "x"]),
        "signal": chance.choice([0, 0, 9, 15]),
    }


def pod_classification(chance):
    vectors = []
    for number in range(1500):
        pod = {
            "reason": chance.choice(["", "", "Evicted", "evicted", "XEvicted", "OutOfmemory", "OutOf", "Zero"]),
            "message": chance.choice(["", "", "the disk is\nfull", "Disk quite FULL", "other"]),
            "initContainers": [some_container(chance) for _ in range(chance.choice([0, 0, 1]))],
            "containers": [some_container(chance) for _ in range(chance.randint(0, 3))],
        }
        rules = chance.choice(["none", "default", "default"])
        code, phrase, attributes = classify(pod, rules == "default")
        vectors.append(
            {
                "id": f"pod-{number}",
                "podFailureSpec": rules,
                "pod": pod,
                "expect": {
                    "code": code,
                    "phrase": phrase,
                    "outcome": "Failed",
                    "attributes": attributes,
                },
            }
        )
    spec = [
        {"code": code, "phrase": phrase, "attributes": attributes, "podPatterns": patterns}
        for code, phrase, attributes, patterns in RULES
    ]
    return {"defaultPodFailureSpec": spec, "vectors": vectors}


def pod_creation_error():
    vectors = []
    torn = ["connection reset", "read: connection reset by peer", "unexpected EOF", "EOF"]
    for status, message, network in itertools.product(
        [None, 0, 400, 401, 403, 404, 405, 408, 409, 413, 415, 422, 429, 500, 502, 503, 504],
        ["", "refused by policy", 'pods "x" is forbidden: exceeded quota: q, requested: cpu=1'],
        [None, *torn, "connection refused", "i/o timeout"],
    ):
        code = -120
        if "exceeded quota" in message:
            pass
        elif status in (413, 422):
            code = -310 if network in torn else -200
        elif status in (400, 403):
            code = -310
        error = {"httpStatus": status, "message": message}
        if network:
            error["networkError"] = network
        vectors.append(
            {
                "id": f"{status}/{message[:8]}/{network}",
                "apiError": error,
                "expect": {"code": code, "completesTaskAttempt": code != -120},
            }
        )
    return {"vectors": vectors}


# ---- the early platform ----

NORMAL, BACKOFF, NON, UNKNOWN = "TRANSIENT_NORMAL", "TRANSIENT_CONFLICT", "NON_TRANSIENT", "UNKNOWN"
BY_STATUS = {
    0: (0, "SUCCEEDED"),
    -1000: (-7100, NORMAL),
    -2517: (-7101, NORMAL),
    -101: (-7102, NORMAL),
    -210: (-7103, NORMAL),
    -100: (-7110, NORMAL),
    -102: (-7120, NORMAL),
    -103: (-7121, NON),
    -104: (-7122, NON),
    -105: (-7123, NORMAL),
    -106: (-7124, NORMAL),
    -107: (-7125, NORMAL),
    -200: (-7126, NORMAL),
}
ABORTED = {
    "container released on a *lost* node": (-7111, NORMAL),
    "container expired since it was unused": (-7112, BACKOFF),
    "container of a completed application": (-7113, BACKOFF),
}
PROGRAM = {130: NORMAL, 134: UNKNOWN, 137: NORMAL, 143: NORMAL, 154: NORMAL, 193: NORMAL, 194: NON}
PROGRAM.update({code: NON for code in (132, 135, 136, 139, 141)})
LAUNCHER = {-7252: BACKOFF, -7302: UNKNOWN, **{c: NON for c in (-7152, -7200, -7251, -7300, -7351, -7400)}}
LAUNCHER.update(
    {c: NORMAL for c in (-7150, -7151, -7153, -7154, -7201, -7202, -7203, -7250, -7301, -7303, -7350, -7352, -7353)}
)


def launcher_exit():
    vectors = []
    words = [None, "", "XXX", *ABORTED]
    words += [f"xx {word.title()} yy" for word in ABORTED]
    words += ["; ".join(ABORTED), "Container expired since it was unused; container of a completed application"]
    raws = [*range(-320, 320), -1000, -2517, -8000, *range(-7410, -7090), 256, 100000]
    for raw in raws:
        for said in words if raw in (-100, -101, 0, 137) else [None]:
            code, kind = raw, PROGRAM.get(raw) or LAUNCHER.get(raw) or UNKNOWN
            if raw in BY_STATUS:
                code, kind = BY_STATUS[raw]
            found = [row for word, row in ABORTED.items() if said and word in said.lower()]
            if raw == -100 and found:
                code, kind = min(found)
            vectors.append(
                {
                    "id": f"{raw}/{said}",
                    "rawExitCode": raw,
                    "rawDiagnostics": said,
                    "expect": {"code": code, "type": kind},
                }
            )
    return {"vectors": vectors}


def members(ranges):
    return {port for first, last in ranges for port in range(first, last + 1)}


def as_ranges(ports):
    result = []
    for port in sorted(ports):
        if result and result[-1][1] == port - 1:
            result[-1][1] = port
        else:
            result.append([port, port])
    return result


def some_ranges(chance):
    firsts = [chance.randint(1, 60) for _ in range(chance.randint(0, 5))]
    return [[first, first + chance.randint(0, 9)] for first in firsts]


def port_cases(chance):
    arithmetic, shared, strings, labels = [], [], [], []
    operations = {
        "coalesce": lambda a, b: as_ranges(a),
        "count": lambda a, b: len(a),
        "contains": lambda a, b: b <= a,
        "union": lambda a, b: as_ranges(a | b),
        "intersect": lambda a, b: as_ranges(a & b),
        "subtract": lambda a, b: as_ranges(a - b),
    }
    for _ in range(150):
        for name, operate in operations.items():
            a, b = some_ranges(chance), some_ranges(chance)
            expect = operate(members(a), members(b))
            arithmetic.append({"op": name, "a": a, "b": b, "expect": expect})
        nodes = [some_ranges(chance) for _ in range(chance.randint(1, 4))]
        common = set.intersection(*[members(node) for node in nodes])
        shared.append({"nodeFree": nodes, "expectCommon": as_ranges(common)})
        demands, taken = {}, set()
        for label in chance.sample(["http", "ssh", "a", "tb", "x_y"], chance.randint(0, 5)):
            count = chance.randint(1, 3)
            start = chance.choice([0, 0, 100 + 10 * len(demands)])
            demands[label] = [start, count]
            taken |= set(range(start, start + count)) if start else set()
        free = set(range(3000, 3000 + sum(n for start, n in demands.values() if not start)))
        given = as_ranges(taken | free)
        parts, ports = [], iter(sorted(free))
        for is_fixed in (True, False):
            for label, (start, count) in demands.items():
                if (start > 0) == is_fixed:
                    mine = range(start, start + count) if start else [next(ports) for _ in range(count)]
                    parts.append((label, ",".join(str(port) for port in mine)))
        strings.append(
            {
                "ports": demands,
                "ranges": given,
                "expectSet": dict(parts),
                "expectString": "".join(f"{label}:{list_};" for label, list_ in parts),
            }
        )
        labels.append({"given": demands, "expect": {"http": [0, 1], "ssh": [0, 1], **demands}})
    return {
        "portString": strings,
        "defaultLabels": {"vectors": labels},
        "rangeArithmetic": arithmetic,
        "sharedFree": shared,
    }


def gpu_placement(chance):
    vectors = []
    for number in range(600):
        nodes = []
        for host in range(chance.randint(0, 6)):
            total = chance.choice([0, 1, 3, 0xF, 0xFF, 0xF0, (1 << 64) - 1])
            used = chance.getrandbits(64) & total if chance.random() < 0.6 else 0
            nodes.append(
                {
                    "host": f"n{host}",
                    "gpuTotalMask": hex(total),
                    "gpuUsedMask": hex(used),
                    "cpu": chance.randint(1, 3),
                    "memMB": 1000 + host,
                    "gpuType": chance.choice(["K40", "T40", ""]),
                }
            )
        vector = {"id": f"gpus-{number}", "nodes": nodes, "gpus": chance.choice([0, 1, 2, 4, 8])}
        mask = 0
        if chance.random() < 0.2:
            mask = chance.choice([1, 3, 0x33, 0xC0])
            vector["mask"] = hex(mask)
        types = chance.choice(["", "", "K40", "K40,T40", "L40", " T40 , L40"])
        if types:
            vector["gpuType"] = types
        candidates = vector["candidates"] = chance.randint(1, 4)
        fitting = []
        for node in nodes:
            total, used = int(node["gpuTotalMask"], 16), int(node["gpuUsedMask"], 16)
            free = total & ~used
            if types and node["gpuType"] not in [one.strip() for one in types.split(",")]:
                continue
            if mask and mask & ~free or bin(free).count("1") < vector["gpus"]:
                continue
            key = (bin(free).count("1"), bin(total).count("1"), node["cpu"], node["memMB"])
            bits = [bit for bit in range(64) if free >> bit & 1][: vector["gpus"]]
            fitting.append((key, node["host"], mask or sum(1 << bit for bit in bits)))
        if mask and bin(mask).count("1") != vector["gpus"]:
            vector["expect"] = "request rejected"
        else:
            chosen = sorted(fitting)[:candidates]
            vector["expect"] = [{"host": host, "mask": f"0x{bits:X}"} for _, host, bits in chosen]
            if number % 2:
                del vector["expect"]
                vector["expectHosts"] = [host for _, host, _ in chosen]
        vectors.append(vector)
    return {"vectors": vectors}


def vc_quota(chance):
    vectors = []
    for number in range(600):
        a = chance.choice([0, 10, 25, 40])
        d_max = chance.choice([100, 100, 100 - a])
        vcs = {
            "default": {"capacity": 100 - a, "max": d_max},
            "a": {"capacity": a, "max": chance.choice([a, 100])},
            "d": {"capacity": 100, "max": 100, "dedicated": True},
        }
        is_open = d_max == 100 or d_max > 100 - a
        if chance.random() < 0.3:
            name, jobs = chance.choice(["a", "d", "default", "none"]), chance.choice([0, 0, 3])
            op, left = {"delete": name, "jobs": jobs}, 100
            error = {"d": "ReadOnlyVcError", "default": "ForbiddenUserError"}.get(name)
            error = "NoVirtualClusterError" if name == "none" else error
            error = "RemoveRunningVcError" if name == "a" and jobs else error
            expect = {"removed": "a", "default": 100, "defaultMax": 100}
        else:
            name, capacity = chance.choice(["a", "b", "d", "default"]), chance.choice([0, 5, 40, 60, 75, 100])
            op = {"put": name, "vcCapacity": capacity}
            most = chance.choice([None, capacity, 100])
            if most is not None:
                op["vcMaxCapacity"] = most
            left = 100 - a - capacity + (a if name == "a" else 0)
            error = {"d": "ReadOnlyVcError", "default": "ForbiddenUserError"}.get(name)
            error = error or ("NoEnoughQuotaError" if left < 0 else None)
            most = capacity if most is None else most
            expect = {name: capacity, f"{name}Max": most, "default": left}
            expect["defaultMax"] = 100 if is_open else left
        expect = {"error": error} if error else expect
        vectors.append({"id": f"vc-{number}", "vcs": vcs, "op": op, "expect": expect})
    return {"vectors": vectors}


def job_state():
    waiting = ["FRAMEWORK_WAITING", "APPLICATION_CREATED", "APPLICATION_LAUNCHED", "APPLICATION_WAITING"]
    between = ["APPLICATION_RETRIEVING_DIAGNOSTICS", "APPLICATION_COMPLETED"]
    codes = [None, 0, 1, 137, 214, 255, -7351, -7400, -7112, -210]

    def final(code, stop):
        return "SUCCEEDED" if code == 0 else "STOPPED" if code == stop else "FAILED"

    vectors = []
    for state in [*waiting, *between, "APPLICATION_RUNNING", "FRAMEWORK_COMPLETED", "", "framework_waiting"]:
        for code in codes:
            if state in waiting:
                row = ["WAITING"] * 3
            elif state in between:
                row = ["RUNNING", "WAITING", "WAITING"]
            elif state == "APPLICATION_RUNNING":
                row = ["RUNNING"] * 3
            elif state == "FRAMEWORK_COMPLETED":
                row = [final(code, 214), final(code, 214), final(code, -7351)]
            else:
                row = ["UNKNOWN"] * 3
            vectors.append({"frameworkState": state, "exitCode": code, **dict(zip("ABC", row))})
    tasks = []
    for code in codes:
        tasks.append({"taskState": "TASK_COMPLETED", "exitCode": code, "expect": final(code, -7400)})
        tasks.append({"taskState": "CONTAINER_RUNNING", "exitCode": code, "expect": "RUNNING"})
        tasks.append({"taskState": "SOMETHING", "exitCode": code, "expect": "UNKNOWN"})
    modern, stops = [], (-210, -220)
    for code in [None, 0, 1, 137, -210, -220, -230, -101]:
        end = final(code, None)
        end = "STOPPED" if code in stops else end
        for state in ["AttemptCreationPending", "AttemptCreationRequested", "AttemptPreparing"]:
            modern.append((state, code, "WAITING", "WAITING"))
        modern.append(("AttemptRunning", code, "RUNNING", "RUNNING"))
        going = "STOPPING" if code in stops else "RUNNING"
        for state in ["AttemptDeletionPending", "AttemptDeletionRequested", "AttemptDeleting"]:
            modern.append((state, code, going, going))
        if code is not None:
            modern.append(("AttemptCompleted", code, going, end))
            modern.append(("Completed", code, end, end))
        modern.append(("Nothing", code, "UNKNOWN", "UNKNOWN"))
    keys = ("state", "code", "job", "jobAttempt")
    return {
        "vectors": vectors,
        "taskStateEraC": tasks,
        "kubernetesEra": [dict(zip(keys, row)) for row in modern],
    }


def kill_all(chance):
    vectors = []
    for number in range(300):
        roles = {name: chance.randint(1, 3) for name in ["ps", "worker", "x"][: chance.randint(1, 3)]}
        tasks = [(role, index) for role, count in roles.items() for index in range(count)]
        most = chance.randint(0, len(tasks) + 1)
        chance.shuffle(tasks)
        expect, exits = {"jobState": "RUNNING", "appExitCode": None, "afterEvent": None}, []
        for role, index in tasks[: chance.randint(1, len(tasks))]:
            code = chance.choice([0, 0, 0, 1, 3, 137])
            exits.append([role, index, code])
            if code:
                expect = {"jobState": "FAILED", "appExitCode": 177, "afterEvent": len(exits)}
            elif len(exits) == most or len(exits) == len(tasks):
                expect = {"jobState": "SUCCEEDED", "appExitCode": 0, "afterEvent": len(exits)}
            if expect["afterEvent"]:
                break
        vectors.append(
            {
                "id": f"kill-{number}",
                "killAllOnCompletedTaskNumber": most,
                "roles": roles,
                "commandExits": exits,
                "expect": expect,
            }
        )
    return {"vectors": vectors}


def barrier(chance):
    settings = []
    for interval, timeout in itertools.product(
        [None, 0, 4, 5, 10, 60, 1200, "7", "x", -5], [None, 0, 59, 60, 600, 1200, 1201, "90", "x", -60]
    ):
        vector = {}
        if interval is not None:
            vector["intervalSec"] = interval
        if timeout is not None:
            vector["timeoutSec"] = timeout
        good = (interval in (None, "7") or isinstance(interval, int) and interval >= 5) and (
            timeout in (None, "90") or isinstance(timeout, int) and 60 <= timeout <= 1200
        )
        settings.append({**vector, "accept": good, **({} if good else {"exit": 210})})
    readiness = []
    for _ in range(300):
        names = ["a", "b"][: chance.randint(1, 2)]
        spec = {name: chance.randint(0, 3) for name in names}
        status, passed = {}, True
        for name in names:
            if chance.random() < 0.1:
                passed &= spec[name] == 0
                continue
            status[name] = []
            for _ in range(chance.randint(max(0, spec[name] - 1), spec[name] + 1)):
                task = {"ip": chance.choice(["10.0.0.1"] * 5 + ["", None])}
                if chance.random() < 0.1:
                    task["deletionPending"] = chance.choice([True, False])
                status[name].append(task)
            wanted = status[name][: spec[name]]
            passed &= len(wanted) == spec[name]
            passed &= all(task["ip"] and not task.get("deletionPending") for task in wanted)
        readiness.append({"spec": spec, "status": status, "passed": passed})
    return {"configVectors": settings, "readiness": readiness}


def run(drivers, folder, name, document):
    file = pathlib.Path(folder) / f"{name}.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    done = subprocess.run(
        [drivers / "vector-job", file], capture_output=True, text=True, check=False
    )
    lines = done.stdout.splitlines()
    wrong = [line for line in lines if not line.startswith(("ok ", "skip "))]
    print(f"{name}: {sum(line.startswith('ok ') for line in lines)} ok, {len(wrong)} not")
    for line in wrong[:10]:
        print(f"  {line}")
    if done.returncode not in (0, 1) or not lines:
        print(f"  exit {done.returncode}: {done.stderr.strip()}")
        return False
    return not wrong and done.returncode == 0


def main():
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    chance = random.Random(20261121)
    families = {
        "retry-decision": retry_decision(),
        "attempt-sequence": attempt_sequence(chance),
        "completion-policy": completion_policy(chance),
        "pod-classification": pod_classification(chance),
        "pod-creation-error": pod_creation_error(),
        "v0-launcher-exit": launcher_exit(),
        "v0-ports": port_cases(chance),
        "v0-gpu-placement": gpu_placement(chance),
        "v0-vc-quota": vc_quota(chance),
        "v0-job-state": job_state(),
        "v0-kill-all": kill_all(chance),
        "barrier": barrier(chance),
    }
    families.update({f"v0-environment-{number}": environment(chance) for number in range(6)})
    with tempfile.TemporaryDirectory() as folder:
        results = [
            run(pathlib.Path(sys.argv[1]), folder, name, document)
            for name, document in families.items()
        ]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
