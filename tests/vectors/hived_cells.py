"""The cells of a plain model of the original scheduler: configuration, free lists, bindings, bad cells.

Written from the description of the rules, each step as it stands there, without regard to speed. What the
original does by accident is done, too: hived_new_imitating is compared with it.
"""

FREE, OPPO = -2, -1


class UserError(Exception):
    pass


class Broken(Exception):
    """Here the original would end."""


class Cell:
    def __init__(self, chain, level, parent, address):
        self.chain, self.level, self.parent, self.address = chain, level, parent, address
        self.children = []
        self.priority, self.state, self.healthy = FREE, "Free", True
        self.used = {}
        self.other = None       # the bound cell of the other tree
        self.pinned = False
        self.total = 1
        self.is_node = False
        # physical
        self.nodes, self.indices, self.split, self.using, self.reserving = [], [], False, None, None
        # virtual
        self.vc, self.root = None, None

    def __repr__(self):
        return "/".join(map(str, self.address))

    def ancestors(self):
        cell = self.parent
        while cell:
            yield cell
            cell = cell.parent


def leaves_of(cell):
    if not cell.children:
        return [cell]
    return [leaf for child in cell.children for leaf in leaves_of(child)]


class Cells:
    """`notes` tells where the original would corrupt its state."""

    def __init__(self, config):
        self.groups = {}
        self.notes = set()
        self.opp = {}            # vc -> list of entries [address, type, healthy, state]
        self.build(config)

    # --- configuration ---

    def build(self, config):
        physical = config.get("physicalCluster") or {}
        self.types = {}
        for name, spec in (physical.get("cellTypes") or {}).items():
            self.types[name] = spec
        leaves = {s["childCellType"] for s in self.types.values()} - set(self.types)
        self.level_of_type = {}

        def level(name):
            if name not in self.types:
                if name not in leaves:
                    raise Broken("unknown type " + name)
                return 1
            return level(self.types[name]["childCellType"]) + 1

        def node_level(name):
            at = name
            while at in self.types:
                if self.types[at].get("isNodeLevel"):
                    return level(at)
                at = self.types[at]["childCellType"]
            return None

        self.chains = []
        self.full, self.free, self.left, self.bad, self.allfree = {}, {}, {}, {}, {}
        self.names, self.node_level, self.leaf_type, self.size = {}, {}, {}, {}
        pins = {}
        for at, spec in enumerate(physical.get("physicalCells") or []):
            name = spec.get("cellType")
            if name not in self.types:
                raise Broken("unknown type")
            if node_level(name) is None:
                raise Broken("below node")
            if name not in self.chains:
                self.chains.append(name)
                names, type_ = {}, name
                while True:
                    names[level(type_)] = type_
                    if type_ not in self.types:
                        break
                    type_ = self.types[type_]["childCellType"]
                self.names[name] = names
                self.leaf_type[name] = names[1]
                self.node_level[name] = node_level(name)
                self.full[name] = {l: [] for l in names}
                self.size[name] = {1: 1}
                for l in range(2, len(names) + 1):
                    self.size[name][l] = self.size[name][l - 1] * self.types[names[l]]["childCellNumber"]
            self.physical_build(name, len(self.names[name]), spec, None, at, pins)
        for chain in self.chains:
            top = len(self.names[chain])
            self.free[chain] = {l: [] for l in range(1, top + 1)}
            self.free[chain][top] = list(self.full[chain][top])
            self.bad[chain] = {l: [] for l in range(1, top + 1)}
            self.allfree[chain] = {l: 0 for l in range(1, top + 1)}
            self.left[chain] = {top: len(self.full[chain][top])}
            for l in range(top - 1, 0, -1):
                self.left[chain][l] = self.left[chain][l + 1] * len(self.full[chain][l + 1][0].children)
        self.vcs = list(config.get("virtualClusters") or {})
        self.vcfree, self.roots, self.pinned, self.doomed, self.vfull, self.tops = {}, {}, {}, {}, {}, {}
        for vc in self.vcs:
            self.vcfree[vc], self.roots[vc], self.pinned[vc], self.doomed[vc] = {}, {}, {}, {}
            self.vfull[vc], self.tops[vc] = {}, []
            self.opp[vc] = []
            spec = config["virtualClusters"][vc] or {}
            number = 0
            for cells in spec.get("virtualCells") or []:
                path = cells["cellType"].split(".")
                chain, type_ = path[0], path[-1]
                if type_ not in self.types and type_ not in leaves:
                    raise Broken("unknown type")
                if chain not in self.chains:
                    raise Broken("unknown chain")
                lev = level(type_)
                for _ in range(cells["cellNumber"]):
                    full = self.vfull[vc].setdefault(chain, {})
                    self.count_vc(vc, chain, lev)
                    root = self.virtual_build(vc, chain, lev, None, [vc, number], full)
                    self.roots[vc].setdefault(chain, {l: [] for l in self.names[chain]})[lev].append(root)
                    self.tops[vc].append(root)
                    number += 1
            for pin in spec.get("pinnedCells") or []:
                cell = pins.get(pin["pinnedCellId"])
                if not cell:
                    raise Broken("unknown pin")
                full = {}
                self.count_vc(vc, cell.chain, cell.level)
                root = self.virtual_build(vc, cell.chain, cell.level, None, [vc, number], full)
                root.pinned = True
                self.pinned[vc][pin["pinnedCellId"]] = (root, cell, full)
                self.tops[vc].append(root)
                number += 1
        self.order = list(self.chains)  # in which a gang tries them
        self.validate()
        self.views = {}
        for vc in self.vcs:
            for chain, full in self.vfull[vc].items():
                self.views[vc, chain] = self.view_new(chain, full)
            for pin, (root, cell, full) in self.pinned[vc].items():
                self.views[vc, "pin", pin] = self.view_new(cell.chain, full)
        for chain in self.chains:
            self.views[None, chain] = self.view_new(chain, self.full[chain])
        for vc in self.vcs:
            for root, cell, _ in self.pinned[vc].values():
                cell.pinned = True
                self.bind_one(cell, root)
                self.preassigned_take(cell, vc, False)
        self.node_bad = {}
        for chain in self.chains:
            for top in self.full[chain][len(self.names[chain])]:
                for node in top.nodes:
                    self.node_set(node, False)

    def count_vc(self, vc, chain, level):
        self.vcfree[vc].setdefault(chain, {l: 0 for l in self.names[chain]})[level] += 1
        self.doomed[vc].setdefault(chain, {l: [] for l in self.names[chain]})
        self.allfree[chain][level] += 1

    def physical_build(self, chain, level, spec, parent, default, pins):
        own = spec.get("cellAddress", "")
        own = default if own in ("", None) else own
        cell = Cell(chain, level, parent, (parent.address if parent else []) + [own])
        cell.is_node = level == self.node_level[chain]
        if spec.get("pinnedCellId"):
            pins[spec["pinnedCellId"]] = cell
        if level > 1:
            number = self.types[self.names[chain][level]]["childCellNumber"]
            children = spec.get("cellChildren") or []
            if not children:
                children = [{} for _ in range(number)]
            base = 0 if cell.is_node else default * number
            cell.default = default
            for i, child in enumerate(children):
                cell.children.append(self.physical_build(chain, level - 1, child or {}, cell, base + i, pins))
            cell.total = sum(c.total for c in cell.children)
        if level == 1:
            node = next((a for a in [cell] + list(cell.ancestors()) if a.is_node))
            cell.nodes, cell.indices = [str(node.address[-1])], [int(own)]
        else:
            for child in cell.children:
                for node in child.nodes:
                    if node not in cell.nodes:
                        cell.nodes.append(node)
                cell.indices += child.indices
        self.full[chain][level].append(cell)
        return cell

    def virtual_build(self, vc, chain, level, parent, address, full):
        cell = Cell(chain, level, parent, address)
        cell.vc = vc
        cell.root = parent.root if parent else cell
        cell.is_node = level == self.node_level[chain]
        full.setdefault(level, []).append(cell)
        if level > 1:
            for i in range(self.types[self.names[chain][level]]["childCellNumber"]):
                cell.children.append(self.virtual_build(vc, chain, level - 1, cell, address + [i], full))
            cell.total = sum(c.total for c in cell.children)
        return cell

    def validate(self):
        for chain in self.chains:
            top = len(self.names[chain])
            available = len(self.full[chain][top])
            for l in range(top, 0, -1):
                left = available - self.allfree[chain][l]
                if left < 0:
                    raise Broken("too many cells")
                available = left * (len(self.full[chain][l][0].children) if l > 1 else 0)

    def view_new(self, chain, full):
        view = []
        seen = set()
        for l in range(self.node_level[chain], 0, -1):
            for cell in full.get(l, []):
                if not any(id(a) in seen for a in cell.ancestors()):
                    seen.add(id(cell))
                    view.append(cell)
        return view

    # --- numbers that run up a tree ---

    def priority_set(self, cell, priority):
        cell.priority = priority
        for above in cell.ancestors():
            above.priority = max(c.priority for c in above.children)

    def used_add(self, cell, priority, by):
        for at in [cell] + list(cell.ancestors()):
            at.used[priority] = at.used.get(priority, 0) + by
            if not at.used[priority]:
                del at.used[priority]

    def state_set(self, cell, state):
        cell.state = state
        if not cell.vc and cell.other:
            cell.other.state = state
        above = cell.parent
        if above and (state == "Used" or all(c.state == state for c in above.children)):
            self.state_set(above, state)

    # --- bindings ---

    def bind_one(self, physical, virtual):
        if physical.other or virtual.other:
            self.notes.add("rebind")
        physical.other, virtual.other = virtual, physical

    def bind(self, physical, virtual):
        while virtual and not virtual.other:
            self.bind_one(physical, virtual)
            physical, virtual = physical.parent, virtual.parent
        if virtual and virtual.other is not physical:
            self.notes.add("mismatched binding")

    def unbind_one(self, physical):
        virtual = physical.other
        if virtual.other is physical:
            virtual.other = None
        virtual.state = "Free"
        physical.other = None

    @staticmethod
    def spare(cells):
        for cell in cells:
            if not cell.other:
                return cell
        return None

    # --- free lists ---

    def in_free(self, cell):
        """It or a cell above it is in the free list."""
        at = cell
        while at:
            if at.other or at.split:
                return False
            if not at.parent or at.parent.split:
                return True
            at = at.parent

    @staticmethod
    def take(list_, cell):
        at = next(i for i, c in enumerate(list_) if c is cell)
        list_[at] = list_[-1]
        list_.pop()

    def free_remove(self, cell):
        """Returns the level up to which it split."""
        free, level = self.free[cell.chain], cell.level
        while True:
            last = not cell.parent or cell.parent.split
            if not last:
                free[cell.level] += cell.parent.children
                cell.parent.split = True
            self.take(free[cell.level], cell)
            if last:
                return cell.level
            cell = cell.parent

    def free_add(self, cell):
        free = self.free[cell.chain]
        while True:
            above = cell.parent
            if not above or any(c is not cell and not any(c is f for f in free[c.level]) for c in above.children):
                free[cell.level].append(cell)
                return cell.level
            for c in above.children:
                if c is not cell:
                    self.take(free[c.level], c)
            above.split = False
            cell = above

    # --- preassigned cells ---

    def preassigned_take(self, cell, vc, is_doomed):
        chain, level = cell.chain, cell.level
        left, allfree = self.left[chain], self.allfree[chain]
        self.vcfree[vc][chain][level] -= 1
        allfree[level] -= 1
        left[level] -= 1
        ok = True
        top = self.free_remove(cell)
        above = cell.parent
        for l in range(level + 1, top + 1):
            left[l] -= 1
            ok &= left[l] >= allfree[l]
            if above.healthy:
                self.doom(chain, l)
            else:
                self.take(self.bad[chain][l], above)
            above = above.parent
        if not cell.healthy:
            self.bad_give(cell)
            if not is_doomed:
                self.undoom(chain, level)
        if cell.healthy:
            self.doom(chain, level)
        number = len(cell.children)
        below, l = cell, level
        while l > 1:
            l -= 1
            left[l] -= number
            ok &= left[l] >= allfree[l]
            if not is_doomed:
                self.doom(chain, l)
            below = below.children[0]
            number *= len(below.children)
        return ok

    def bad_give(self, cell):
        if any(c is cell for c in self.bad[cell.chain][cell.level]):
            self.take(self.bad[cell.chain][cell.level], cell)
        for child in cell.children:
            if not child.healthy:
                if not child.other:
                    self.bind_one(child, self.spare(cell.other.children))
                self.bad_give(child)

    def bad_back(self, cell):
        self.bad[cell.chain][cell.level].append(cell)
        for child in cell.children:
            if not child.healthy:
                if child.other:
                    self.unbind_one(child)
                self.bad_back(child)

    def preassigned_give(self, cell, vc, is_doomed):
        chain, level = cell.chain, cell.level
        left, allfree = self.left[chain], self.allfree[chain]
        self.vcfree[vc][chain][level] += 1
        allfree[level] += 1
        left[level] += 1
        top = self.free_add(cell)
        above = cell.parent
        for l in range(level + 1, top + 1):
            left[l] += 1
            if above.healthy:
                self.undoom(chain, l)
            else:
                self.bad[chain][l].append(above)
            above = above.parent
        if cell.other:
            self.notes.add("give bound")
        if not cell.healthy:
            self.bad_back(cell)
            if not is_doomed:
                self.doom(chain, level)
        if cell.healthy:
            self.undoom(chain, level)
        number = len(cell.children)
        below, l = cell, level
        while l > 1:
            l -= 1
            left[l] += number
            if not is_doomed:
                self.undoom(chain, l)
            below = below.children[0]
            number *= len(below.children)

    # --- doomed bad cells ---

    def doom(self, chain, level):
        for vc in self.vcs:
            if chain not in self.vcfree[vc]:
                continue
            while self.vcfree[vc][chain][level] > self.left[chain][level] - len(self.bad[chain][level]):
                if not self.bad[chain][level]:
                    self.notes.add("doom without a bad cell")
                    break
                bad = self.bad[chain][level][0]
                root = self.spare(self.roots[vc].get(chain, {level: []})[level])
                if not root:
                    self.notes.add("doom without a root")
                    break
                self.take(self.bad[chain][level], bad)
                self.bind_one(bad, root)
                self.doomed[vc][chain][level].append(bad)
                self.preassigned_take(bad, vc, True)

    def undoom(self, chain, level):
        for vc in self.vcs:
            if chain not in self.vcfree[vc]:
                continue
            doomed = self.doomed[vc][chain][level]
            while doomed and self.vcfree[vc][chain][level] < self.left[chain][level] - len(self.bad[chain][level]):
                self.doom_end(doomed[0], vc)

    def doom_end(self, cell, vc):
        self.take(self.doomed[vc][cell.chain][cell.level], cell)
        if cell.other.priority >= 0:
            self.notes.add("doomed in use")
            return
        self.preassigned_unbind(cell)
        self.preassigned_give(cell, vc, True)

    def preassigned_unbind(self, cell):
        if cell.other:
            self.unbind_one(cell)

    def is_doomed(self, cell):
        return any(c is cell for vc in self.vcs for c in self.doomed[vc].get(cell.chain, {cell.level: []})[cell.level])

    # --- nodes ---

    def node_set(self, node, healthy):
        if self.node_bad.get(node, False) == (not healthy):
            return
        self.node_bad[node] = not healthy
        for chain in self.chains:
            for leaf in self.full[chain][1]:
                if leaf.nodes[0] == node:
                    (self.heal if healthy else self.spoil)(leaf)

    def spoil(self, cell):
        if not cell.healthy:
            return
        cell.healthy = False
        if cell.parent:
            self.spoil(cell.parent)
        if self.in_free(cell):
            self.bad[cell.chain][cell.level].append(cell)
            self.doom(cell.chain, cell.level)
        elif not cell.other and cell.parent and cell.parent.other:
            spare = self.spare(cell.parent.other.children)
            if spare:
                self.bind_one(cell, spare)
            else:
                self.notes.add("no spare")

    def heal(self, cell):
        cell.healthy = True
        if self.in_free(cell):
            self.take(self.bad[cell.chain][cell.level], cell)
            self.undoom(cell.chain, cell.level)
        elif cell.other:
            vc = cell.other.vc
            if not cell.other.parent and any(c is cell for c in self.doomed[vc].get(cell.chain, {cell.level: []})[cell.level]):
                self.doom_end(cell, vc)
            elif cell.level == 1 and cell.other.priority < 0:
                self.unbind_keep_root(cell)
        if cell.parent and all(c.healthy for c in cell.parent.children) and not cell.parent.healthy:
            self.heal(cell.parent)

    def unbind_keep_root(self, physical):
        while physical.other and physical.other.parent:
            virtual = physical.other
            self.unbind_one(physical)
            if any(c.other for c in virtual.parent.children):
                return
            physical = physical.parent

    # --- leaves ---

    def leaf_allocate(self, p, v, priority, vc):
        if v is None:
            self.priority_set(p, OPPO)
            self.used_add(p, OPPO, 1)
            self.opp.setdefault(vc, []).append([tuple(p.address), self.names[p.chain][1], True, "Used"])
            return True
        self.priority_set(v, priority)
        self.used_add(v, priority, 1)
        self.priority_set(p, priority)
        self.used_add(p, priority, 1)
        new = not v.root.other
        if not p.other:
            self.bind(p, v)
        elif p.other is not v:
            self.notes.add("other virtual leaf")
        if new and v.root.other:
            return self.preassigned_take(v.root.other, vc, False)
        return True

    def leaf_release(self, p, vc):
        v = p.other
        top = None
        if v is not None:
            if v.priority < 0:
                self.notes.add("release of a bad leaf in opportunistic use")
            self.used_add(v, v.priority, -1)
            self.priority_set(v, FREE)
            top = v.root.other
            if p.healthy:
                self.unbind_keep_root(p)
            if v.root.priority < 0 and not v.root.pinned and top and not self.is_doomed(top):
                self.unbind_one(top)
                self.preassigned_give(top, v.root.vc, False)
        else:
            entry = next((e for e in self.opp.get(vc, []) if e[0] == tuple(p.address)), None)
            if entry:
                self.opp[vc].remove(entry)
        self.used_add(p, p.priority, -1)
        self.priority_set(p, FREE)
