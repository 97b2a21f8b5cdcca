"""The end of a server: it is told to end, and when it hangs it is asked what it is doing before it is killed."""
import pathlib
import shutil
import signal
import subprocess

END_S = 60  # less than after what it ends by force (src/server/end_watch.h): then nobody could ask it any more


def threads(pid):
    """What each thread of a process does: its name and state, where it waits in the kernel, and in the program when there is gdb."""
    said = []
    for task in sorted(pathlib.Path(f"/proc/{pid}/task").iterdir(), key=lambda path: int(path.name)):
        said.append(f"thread {task.name}")
        for name in ("comm", "wchan", "syscall", "stack"):
            try:
                said.append(f"  {name}: " + (task / name).read_text().strip().replace("\n", "\n    "))
            except OSError as error:  # it has ended meanwhile, or we may not
                said.append(f"  {name}: {error}")
    if shutil.which("gdb"):
        try:
            gdb = subprocess.run(["gdb", "-batch", "-nx", "-p", str(pid), "-ex", "thread apply all backtrace"],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
            said.append(gdb.stdout)
        except subprocess.TimeoutExpired:
            said.append("gdb did not end")
    children = subprocess.run(["ps", "-o", "pid,stat,wchan:32,args", "--ppid", str(pid)], stdout=subprocess.PIPE, text=True, check=False)
    return "\n".join([*said, "its children:", children.stdout])


def end(process, log, how=signal.SIGTERM, limit=END_S):
    """Sends the signal and waits; the exit status. `log`: the file that the server writes."""
    process.send_signal(how)
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        doing = threads(process.pid)
        process.kill()
        process.wait()
        said = pathlib.Path(log).read_text(errors="replace")
        raise AssertionError(f"the server did not end within {limit} s:\n{doing}\nits log:\n{said[-4000:]}") from None
