#!/usr/bin/env python3
"""Do the drivers look at every expectation?

usage: mutate.py [--spoil] DRIVERS FILE-OR-FOLDER...

DRIVERS is the build's folder of drivers (it has vector-job). Every leaf of every expectation in the
files is changed, one at a time, and the driver is run on the file with that change: a change that
gives no further FAIL is printed as `unseen FILE PATH: OLD -> NEW`. The last line is the score. Exit 0 when
every change was seen, 1 when one was not, 2 when something could not be run, 77 when no file is
given.

With --spoil the files' shapes are damaged instead: members go missing or are of other kinds. The
driver must end as drivers do, with a line for what it could not use, and never crash.
"""

import copy
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

# what is expected, by file: names of members below which all is expectation
EXPECTED = {
    "retry-decision": ["expect"],
    "attempt-sequence": ["expect"],
    "completion-policy": ["expect", "expectAfterEach"],
    "pod-classification": ["expect", "predefinedCodes", "reservedRanges"],
    "pod-creation-error": ["expect"],
    "state-machine": [
        "startState",
        "attemptFinalState",
        "finalState",
        "instanceAssociated",
        "completing",
        "transitions",
        "times",
        "allowed",
    ],
    "rescale": ["expect"],
    "controller-config": ["accept", "defaults"],
    "framework-object-validation": ["accept"],
    "naming-and-injection": ["expect"],
    "barrier": ["accept", "exit", "passed", "expect", "defaults"],
    "v0-job-config": ["expect", "rejectedPath", "minimalWithDefaults"],
    "v0-environment": ["qizhi", "pai_0_14", "portListItems", "sshConfigQizhi"],
    "v0-job-state": ["A", "B", "C", "expect", "job", "jobAttempt"],
    "v0-kill-all": ["expect"],
    "v0-launcher-exit": ["expect"],
    "v0-launcher-retry": [
        "maxRetryCount",
        "fancyRetryPolicy",
        "expectRangeSec",
        "counters",
        "jobApiRetries",
    ],
    "v0-gpu-placement": ["expect", "expectHosts"],
    "v0-ports": ["expect", "expectSet", "expectString", "expectCommon"],
    "v0-vc-quota": ["expect"],
}

# words about the original that no implementation can answer for, or that only name the input
NOT_COMPARED = [
    r"v0-vc-quota: .*/order$",  # of calls to the cluster manager
    r"v0-environment: .*/(role|taskIndex|Host)$",  # which task is looked at
    r"v0-launcher-retry: .*/(budget|exit SUCCEEDED|to 0\.6 / QIZHI 1\.0|0\.7-0\.11)$",  # other eras
    r"v0-job-config: .*/expect/(0\.4|0\.7)$",  # the newest era decides
    r"v0-job-config: /minimalWithDefaults/(0\.4|0\.7)/",
]
STATES = ["Completed", "AttemptRunning", "removed", "replaced", "added", "Succeeded", "paused"]


def leaves(value, path=()):
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, path + (key,))
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from leaves(item, path + (index,))
    else:
        yield path, value


def changes(value):
    """Other values for a leaf."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, (int, float)):
        return [value + 1]
    if value is None:
        return [12345]
    if value == [] or value == {}:
        return [["x"]] if value == [] else [{"x": 1}]
    if " " not in value:
        return [value + "x"]
    others = ["something else"]
    for number in re.finditer(r"(?<![\w.])-?\d+", value):
        other = str(int(number.group()) + 7)
        others.append(value[: number.start()] + other + value[number.end() :])
    others += [value.replace(word, "Bogus", 1) for word in STATES if word in value]
    return others


def put(document, path, value):
    for key in path[:-1]:
        document = document[key]
    document[path[-1]] = value


def start(program, files):
    return subprocess.run(
        [program, *files], capture_output=True, text=True, check=False
    )


def run(program, name, document, folder):
    file = pathlib.Path(folder) / f"{name}.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    return start(program, [file])


def failures(program, name, document, folder):
    done = run(program, name, document, folder)
    if done.returncode not in (0, 1):
        print(f"{program} {name}: exit {done.returncode}: {done.stderr.strip()}")
        sys.exit(2)
    return {line for line in done.stdout.splitlines() if line.startswith("FAIL ")}


def is_expected(name, path):
    text = f"{name}: /" + "/".join(str(part) for part in path)
    return any(part in EXPECTED[name] for part in path) and not any(
        re.search(pattern, text) for pattern in NOT_COMPARED
    )


def check(program, file, folder):
    name = pathlib.Path(file).stem
    document = json.loads(pathlib.Path(file).read_text(encoding="utf-8"))
    if name not in EXPECTED:
        print(f"skip {name}: no driver compares it")
        return 0, 0
    before = failures(program, name, document, folder)
    for line in sorted(before):
        print(line)
    seen, total = 0, len(before)
    for path, value in list(leaves(document)):
        if not is_expected(name, path):
            continue
        for other in changes(value):
            put(document, path, other)
            total += 1
            if failures(program, name, document, folder) - before:
                seen += 1
            else:
                where = "/".join(str(part) for part in path)
                print(f"unseen {name} {where}: {value!r} -> {other!r}")
        put(document, path, value)
    print(f"{name}: {seen} of {total} changes seen")
    return seen, total


ODD = [None, True, -1, 0, 1.5, 2**40, -(2**70), "", "x", "\u00e9\u0000", [], {}, [[]], [None], {"x": {}}]


def places(value, path=()):
    yield path
    if not isinstance(value, (dict, list)):
        return
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        yield from places(item, path + (key,))


def damaged(document, path, chance):
    result = copy.deepcopy(document)
    parent = result
    for key in path[:-1]:
        parent = parent[key]
    if chance.random() < 0.25:
        del parent[path[-1]]
    else:
        parent[path[-1]] = chance.choice(ODD)
    return result


def is_crash(done):
    return done.returncode not in (0, 1, 2) or not done.stdout + done.stderr


def spoil(program, file, folder):
    name = pathlib.Path(file).stem
    document = json.loads(pathlib.Path(file).read_text(encoding="utf-8"))
    chance = random.Random(name)
    every = [path for path in places(document) if path]
    files = []
    for number, path in enumerate(chance.sample(every, min(len(every), 40))):
        files.append(pathlib.Path(folder) / f"{name}-{number}.json")
        files[-1].write_text(json.dumps(damaged(document, path, chance)), encoding="utf-8")
    crashes = 0
    if is_crash(start(program, files)):
        for one in files:
            done = start(program, [one])
            if is_crash(done):
                crashes += 1
                print(f"crash: exit {done.returncode}: {done.stderr[-200:]}")
                print(one.read_text(encoding="utf-8"))
    print(f"{name}: {len(files) - crashes} of {len(files)} damaged files taken")
    return len(files) - crashes, len(files)


def main():
    arguments = sys.argv[1:]
    work = spoil if "--spoil" in arguments else check
    arguments = [argument for argument in arguments if argument != "--spoil"]
    if not arguments:
        print(__doc__)
        return 2
    if len(arguments) == 1:
        print("skip: no files of vectors are given")
        return 77
    files = []
    for argument in map(pathlib.Path, arguments[1:]):
        files += sorted(argument.glob("*.json")) if argument.is_dir() else [argument]
    good = total = 0
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            one, all_of = work(pathlib.Path(arguments[0]) / "vector-job", file, folder)
            good, total = good + one, total + all_of
    print(f"{good} of {total}")
    return 0 if good == total else 1


if __name__ == "__main__":
    sys.exit(main())
