"""Files of storages in a real browser: listed, downloaded, uploaded, renamed and deleted on the disk of a real skepd.

Covers: src/api/files.c, src/api/upload.c, web/src/pages/files.tsx, web/src/lib/uploads.ts

usage: test_portal_files.py [ARGUMENT…]    further arguments are Playwright's

Exit 77: something that it needs is not installed, or skepd was built without the portal.
"""
import sys

from browser import SKIP, packages_install, playwright, why_not
from world import World

STORAGES = """
api: {{uploadMaxMB: 8}}
storages:
- {{name: open, directory: {0}/open}}
- {{name: home, type: nfs, server: files.example.org, path: /export/home, directory: {0}/home, share: false}}
- {{name: fixed, directory: {0}/fixed, readOnly: true}}
- {{name: claimed, claim: data}}
"""
MANY = 3000


def main():
    reason = why_not(needs_containers=False)
    if reason:
        print(f"skip: {reason}")
        return SKIP
    packages_install()
    world = World(run_ms=100)
    place = world.folder / "storages"
    for name in ("open/data/many", "home", "fixed/results"):
        (place / name).mkdir(parents=True)
    (place / "open/data/words 模型.txt").write_text("one two three")
    (place / "open/data/link").symlink_to("/etc/passwd")
    (place / "fixed/results/model.pt").write_bytes(bytes(5000))
    for i in range(MANY):
        (place / f"open/data/many/part-{i:04}").touch()
    config = world.folder / "skepd.yaml"
    config.write_text(config.read_text() + STORAGES.format(place))
    with world:
        return playwright(world, "files.spec.ts", *sys.argv[1:], PORTAL_FILES=str(place))


if __name__ == "__main__":
    sys.exit(main())
