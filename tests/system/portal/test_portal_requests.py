"""Requests in a real browser: a visitor asks for an account, a user for a virtual cluster, and an administrator decides.

Covers: web/src/api/requests.ts, web/src/pages/admin/requests.tsx, web/src/ui/ask-access.tsx, web/src/ui/ask-account.tsx

usage: test_portal_requests.py [ARGUMENT…]    further arguments are Playwright's

Exit 77: something that it needs is not installed, or skepd was built without the portal.
"""
import sys

from browser import SKIP, packages_install, playwright, why_not
from world import World

CELLS = """\
physicalCluster:
  cellTypes:
    NODE: {childCellType: FAKE, childCellNumber: 4, isNodeLevel: true}
  physicalCells: [{cellType: NODE, cellAddress: fake0}, {cellType: NODE, cellAddress: fake1}]
virtualClusters:
  default: {virtualCells: [{cellType: NODE, cellNumber: 1}]}
  vision: {virtualCells: [{cellType: NODE, cellNumber: 1}]}
"""


def main():
    reason = why_not(needs_containers=False)
    if reason:
        print(f"skip: {reason}")
        return SKIP
    packages_install()
    world = World(run_ms=100)
    cells = world.folder / "cells.yaml"
    cells.write_text(CELLS)
    config = world.folder / "skepd.yaml"
    config.write_text(config.read_text() + f"\nscheduling: {{policy: hived, cellsFile: {cells}}}\nauth: {{signUp: request}}\n"
                      # with folders of users: a removed user's name leads to one
                      "storages: [{name: home, directory: /srv, share: false}]\n")
    with world:
        return playwright(world, "requests.spec.ts", *sys.argv[1:], PORTAL_REQUESTS="1")


if __name__ == "__main__":
    sys.exit(main())
