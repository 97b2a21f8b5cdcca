"""The cluster in a real browser, on the fake engine: the map of cells with racks, nodes and switches, and a server without cells.

Covers: web/src/pages/cluster/map.tsx, web/src/pages/cluster/shares.tsx, web/src/lib/map-steps.ts, web/src/lib/cells.ts,
web/src/pages/cluster/nodes.tsx

usage: test_portal_map.py [ARGUMENT…]    further arguments are Playwright's

Exit 77: something that it needs is not installed, or skepd was built without the portal.
"""
import sys

from browser import SKIP, packages_install, playwright, why_not
from world import World

# of the fourth node no engine tells: its GPUs are bad
CELLS = """\
physicalCluster:
  cellTypes:
    SWITCH: {childCellType: FAKE, childCellNumber: 4}
    SOCKET: {childCellType: SWITCH, childCellNumber: 2}
    NODE: {childCellType: SOCKET, childCellNumber: 2, isNodeLevel: true}
    RACK: {childCellType: NODE, childCellNumber: 2}
  physicalCells:
  - {cellType: RACK, cellAddress: north, cellChildren: [{cellAddress: fake0}, {cellAddress: fake1}]}
  - {cellType: RACK, cellAddress: south, cellChildren: [{cellAddress: fake2}, {cellAddress: fake9}]}
virtualClusters:
  default: {virtualCells: [{cellType: RACK.NODE, cellNumber: 2}]}
  vision: {virtualCells: [{cellType: RACK.NODE, cellNumber: 1}]}
"""
CONFIG = """\
engine: {{kind: fake, fake: {{nodes: 3, cpu: 64, memoryMB: 65536, gpus: 16, runMilliseconds: 86400000}}}}
scheduling: {{policy: hived, cellsFile: {cells}}}
"""


PLAIN = """\
engine: {kind: fake, fake: {nodes: 3, cpu: 64, memoryMB: 65536, gpus: 16, runMilliseconds: 86400000}}
scheduling: {policy: spread}
"""


def run(config, spec, **environment):
    world = World()
    cells = world.folder / "cells.yaml"
    cells.write_text(CELLS)
    (world.folder / "skepd.yaml").write_text(config.format(cells=cells) if config is CONFIG else config)
    with world:
        return playwright(world, spec, *sys.argv[1:], **environment)


def main():
    reason = why_not(needs_containers=False)
    if reason:
        print(f"skip: {reason}")
        return SKIP
    packages_install()
    return run(CONFIG, "map.spec.ts", PORTAL_MAP="1") or run(PLAIN, "plain.spec.ts", PORTAL_PLAIN="1")


if __name__ == "__main__":
    sys.exit(main())
