"""Jobs of the early platform at random places, and what their containers' variables must be."""

LABELS = ["http", "ssh", "tb", "p_q"]
FILE_SYSTEM, USER = "hdfs://nn:9000", "bob"


def some_role(chance, name):
    role = {
        "name": name,
        "taskNumber": chance.randint(1, 4),
        "cpuNumber": chance.randint(1, 9),
        "memoryMB": chance.choice([100, 2048]),
        "gpuNumber": chance.randint(0, 8),
        "command": "c",
    }
    if chance.random() < 0.5:
        role["shmMB"] = chance.choice([64, 100])
    for key in ("minFailedTaskCount", "minSucceededTaskCount"):
        if chance.random() < 0.4:
            role[key] = chance.choice([None, 1])
    ports = [
        {"label": label, "beginAt": chance.choice([0, 0, 7000 + 10 * i]), "portNumber": chance.randint(1, 3)}
        for i, label in enumerate(chance.sample(LABELS, chance.randint(0, 3)))
    ]
    return {**role, "portList": ports} if ports else role


def places_of(roles):
    allocation, hosts, port = {}, 0, 3000
    for role in roles:
        demands = {p["label"]: (p["beginAt"], p["portNumber"]) for p in role.get("portList", [])}
        demands = {"http": (0, 1), "ssh": (0, 1), **demands}
        allocation[role["name"]] = []
        for _ in range(role["taskNumber"]):
            ports = {}
            for label, (begin, count) in demands.items():
                first = begin or port
                port += 0 if begin else count + 1
                ports[label] = list(range(first, first + count))
            hosts += 1
            allocation[role["name"]].append({"ip": f"10.0.{hosts // 200}.{hosts % 200 + 1}", "ports": ports})
    return allocation


def joined(ports):
    return ",".join(str(port) for port in ports)


def directories(job):
    result = {key: job.get(key, "").replace("$QIZHI_DEFAULT_FS_URI", FILE_SYSTEM) for key in ("dataDir", "codeDir", "outputDir")}
    result["outputDir"] = result["outputDir"] or f"{FILE_SYSTEM}/Output/{USER}/{job['jobName']}"
    return result


def common(job, role, index, place):
    roles = job["taskRoles"]
    tasks = sum(one["taskNumber"] for one in roles)
    names = ",".join(one["name"] for one in roles)
    paths = directories(job)
    web = place["ports"]["http"][0]
    values = {
        "DEFAULT_FS_URI": FILE_SYSTEM,
        "USER_NAME": USER,
        "DATA_DIR": paths["dataDir"],
        "OUTPUT_DIR": paths["outputDir"],
        "CODE_DIR": paths["codeDir"],
        "CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": index,
        "CONTAINER_HOST_IP": place["ip"],
        "CONTAINER_HOST_PORT": web,
        "CONTAINER_SSH_PORT": place["ports"]["ssh"][0],
        "CURRENT_CONTAINER_IP": place["ip"],
        "CURRENT_CONTAINER_PORT": web,
        "TASK_INDEX": index,
        "TASK_ROLE_INDEX": index,
        "USERNAME": USER,
    }
    twice = [
        (("CURRENT_TASK_ROLE_NAME", "TASK_ROLE_NAME"), role["name"]),
        (("CURRENT_TASK_ROLE_TASK_COUNT", "TASK_ROLE_NUM"), role["taskNumber"]),
        (("CURRENT_TASK_ROLE_CPU_COUNT", "TASK_CPU_NUM"), role["cpuNumber"]),
        (("CURRENT_TASK_ROLE_MEM_MB", "TASK_MEM_MB"), role["memoryMB"]),
        (("CURRENT_TASK_ROLE_GPU_COUNT", "TASK_GPU_NUM"), role["gpuNumber"]),
        (("JOB_TASK_COUNT", "TASKS_NUM"), tasks),
        (("JOB_TASK_ROLE_COUNT", "TASK_ROLES_NUM"), len(roles)),
        (("JOB_TASK_ROLE_LIST", "TASK_ROLE_LIST"), names),
    ]
    values.update({key: value for keys, value in twice for key in keys})
    values.update({f"CONTAINER_HOST_{label}_PORT_LIST": joined(ports) for label, ports in place["ports"].items()})
    return values


def later(job, role, allocation):
    """What 0.7 to 0.14 added."""
    shm, name = role.get("shmMB", 64), role["name"]
    resource = f"{role['gpuNumber']},{role['cpuNumber']},{role['memoryMB']},{shm}"
    values = {"CURRENT_TASK_ROLE_SHM_MB": shm, "TASK_ROLE_COUNT": len(job["taskRoles"]), "RESOURCE": resource}
    for word, most in (("FAILED", role.get("minFailedTaskCount", 1)), ("SUCCEEDED", role.get("minSucceededTaskCount"))):
        values[f"MIN_{word}_TASK_COUNT_{name}"] = values[f"CURRENT_TASK_ROLE_MIN_{word}_TASK_COUNT"] = "" if most is None else most
    for one, places in allocation.items():
        values[f"TASK_ROLE_TASK_COUNT_{one}"] = len(places)
        for index, place in enumerate(places):
            values[f"HOST_IP_{one}_{index}"] = place["ip"]
            for label, ports in place["ports"].items():
                values[f"PORT_LIST_{one}_{index}_{label}"] = values[f"{one}_{index}_{label}_PORT"] = joined(ports)
    return values


def variables(prefix, job, role, index, allocation):
    is_later = prefix == "PAI_"
    values = common(job, role, index, allocation[role["name"]][index])
    values["JOB_NAME"] = f"{USER}~{job['jobName']}" if is_later else job["jobName"]
    for number, (name, places) in enumerate(allocation.items()):
        hosts = ",".join(f"{place['ip']}:{place['ports']['http'][0]}" for place in places)
        values[f"TASK_ROLE_{name}_HOST_LIST"] = hosts
        if not is_later:
            values[f"TASK_ROLE_{number}_HOST_LIST"] = hosts
    if is_later:
        values.update(later(job, role, allocation))
    elif "killAllOnCompletedTaskNumber" in job:
        values["KILL_ALL_ON_COMPLETED_TASK_NUM"] = job["killAllOnCompletedTaskNumber"]
    return {prefix + key: str(value) for key, value in values.items()}


def environment(chance):
    names = chance.sample(["ps", "worker", "a.b", "x_1", "Main", "r~t"], chance.randint(1, 4))
    job = {"jobName": "j.b-1", "image": "i", "taskRoles": [some_role(chance, name) for name in names]}
    for key in ("dataDir", "codeDir", "outputDir"):
        if chance.random() < 0.6:
            job[key] = chance.choice(["", f"$QIZHI_DEFAULT_FS_URI/a/{key}", f"hdfs://other/{key}"])
    if chance.random() < 0.7:
        job["killAllOnCompletedTaskNumber"] = chance.randint(0, 2)
    allocation = places_of(job["taskRoles"])
    tasks = [(role, index) for role in job["taskRoles"] for index in range(role["taskNumber"])]
    document = {"job": job, "allocation": allocation, "fsUri": FILE_SYSTEM, "user": USER}
    for era, prefix in (("qizhi", "QIZHI_"), ("pai_0_14", "PAI_")):
        document[era] = [
            {"role": role["name"], "taskIndex": index, "env": variables(prefix, job, role, index, allocation)}
            for role, index in tasks
        ]
    document["sshConfigQizhi"] = [
        {
            "Host": f"{role['name']}-{index}",
            "HostName": allocation[role["name"]][index]["ip"],
            "Port": allocation[role["name"]][index]["ports"]["ssh"][0],
            "User": "root",
            "IdentityFile": "/root/.ssh/key",
        }
        for role, index in tasks
    ]
    return document
