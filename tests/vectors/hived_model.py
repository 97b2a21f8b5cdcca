"""A plain model of the original scheduler: packing, mapping, groups, and the ops of vectors (see hived_cells)."""
from hived_cells import FREE, OPPO, Broken, Cells, UserError, leaves_of


class Group:
    pass


class Model(Cells):
    # --- packing ---

    def pack(self, view, chain, sizes, priority, is_cluster, suggested):
        p = OPPO
        picked, reason = self.nodes_find(view, sizes, p, is_cluster, suggested)
        if picked is None and priority > OPPO:
            p = priority
            picked, reason = self.nodes_find(view, sizes, p, is_cluster, suggested)
        if picked is None:
            return None, reason
        result, candidates = [], {}
        for cell, size in zip(picked, sizes):
            if id(cell) not in candidates:
                leaves = leaves_of(cell)
                candidates[id(cell)] = [l for l in leaves if l.priority == FREE] + \
                    [l for l in leaves if FREE < l.priority < p]
            chosen = self.leaves_find(candidates[id(cell)], size, chain)
            candidates[id(cell)] = [l for l in candidates[id(cell)] if l not in chosen]
            result.append(chosen)
        return result, None

    def nodes_find(self, view, sizes, p, is_cluster, suggested):
        info = {}
        for cell in view:
            free = cell.total - sum(n for q, n in cell.used.items() if q >= p)
            if is_cluster:
                same = cell.used.get(p, 0)
                higher = sum(n for q, n in cell.used.items() if q > p)
                seen = cell
            else:
                same, higher = sum(cell.used.values()), 0
                seen = cell.other
            healthy = seen is None or seen.healthy
            fits = suggested is None or seen is None or seen.nodes[0] in suggested
            info[id(cell)] = (free, healthy, fits, same, higher)
        view.sort(key=lambda c: (not info[id(c)][1], not info[id(c)][2], -info[id(c)][3], info[id(c)][4]))
        picked, taken, at, pod = [], 0, 0, 0
        while at < len(view):
            free, healthy, fits, _, _ = info[id(view[at])]
            if free - taken >= sizes[pod]:
                if not healthy:
                    return None, "bad"
                if not fits:
                    return None, "not suggested"
                picked.append(view[at])
                taken += sizes[pod]
                pod += 1
                if pod == len(sizes):
                    return picked, None
            else:
                taken = 0
                at += 1
        return None, "capacity"

    def leaves_find(self, candidates, size, chain):
        optimal = next(l for l in sorted(self.size[chain]) if self.size[chain][l] >= size)
        best = [99, None]

        def common(a, b):
            if a is None:
                return None
            above = [a] + list(a.ancestors())
            ids = {id(c): c for c in above}
            return next((c for c in [b] + list(b.ancestors()) if id(c) in ids), None)

        def search(first, chosen, lca):
            for i in range(first, len(candidates)):
                now = candidates[i] if not chosen else common(lca, candidates[i])
                level = 98 if now is None else now.level
                if level > best[0]:
                    continue
                picked = chosen + [candidates[i]]
                if len(picked) == size:
                    if level < best[0]:
                        best[0], best[1] = level, picked
                        if level == optimal:
                            return True
                elif search(i + 1, picked, now):
                    return True
            return False
        search(0, [], None)
        return best[1]

    # --- mapping ---

    def usable(self, cells, needed, suggested):
        good = [c for c in cells if not c.other and not (len(c.nodes) == 1 and not c.healthy)
                and (suggested is None or any(n in suggested for n in c.nodes))]
        if len(good) < needed:
            return None
        return sorted(good, key=lambda c: c.used.get(OPPO, 0))

    def cells_map(self, vertices, cells, suggested, bindings):
        """vertices: [(virtual cell, children to bind)]; returns the physical cells, or None."""
        cells = self.usable(cells, len(vertices), suggested)
        if cells is None:
            return None
        picked = []

        def place(at):
            if at == len(vertices):
                return True
            virtual, below = vertices[at]
            for cell in cells:
                if any(cell is c for c in picked):
                    continue
                if cell.level == 1:
                    bindings[id(virtual)] = cell
                elif self.cells_map(below, cell.children, suggested, bindings) is None:
                    continue
                picked.append(cell)
                if place(at + 1):
                    return True
                picked.pop()
            return False
        return picked if place(0) else None

    def buddy(self, vertex, free, level, suggested, bindings):
        own = vertex[0].level
        if level == own:
            picked = self.cells_map([vertex], free[level], suggested, bindings)
            if picked is None:
                return False
            self.take(free[level], picked[0])
            return True
        cells = self.usable(free[level], 1, suggested)
        for cell in cells or []:
            free[level - 1] = free[level - 1] + cell.children
            if self.buddy(vertex, free, level - 1, suggested, bindings):
                self.take(free[level], cell)
                return True
            free[level - 1] = []
        return False

    def relaxed(self, vertex, free, allfree, suggested, bindings, chain):
        own, top = vertex[0].level, len(self.names[chain])
        splittable = {}
        for l in range(top, own, -1):
            splittable[l] = len(free[l]) - allfree[l]
            if l < top:
                splittable[l] += splittable[l + 1] * len(self.full[chain][l + 1][0].children)
            if splittable[l] < 0:
                raise Broken("safety")
        for l in range(own + 1, top + 1):
            number = min(len(free[l]), splittable[l])
            if number <= 0:
                continue
            pieces = []
            for _ in range(number):
                cell = free[l][0]
                pieces.append(cell)
                self.take(free[l], cell)
            for _ in range(l, own, -1):
                pieces = [c for p in pieces for c in p.children]
            free[own] = pieces + free[own]
            picked = self.cells_map([vertex], free[own], suggested, bindings)
            if picked is not None:
                self.take(free[own], picked[0])
                return True
        return False

    def map(self, chain, leaves, suggested):
        bindings, vertices, roots, families = {}, {}, [], []
        for leaf in leaves:
            if leaf.other:
                bindings[id(leaf)] = leaf.other
                continue
            below = None
            cell = leaf
            while True:
                if cell is None:
                    roots.append(below)
                    break
                if cell.other:
                    family = next((f for f in families if f[0] is cell), None)
                    if not family:
                        family = (cell, [])
                        families.append(family)
                    family[1].append(below)
                    break
                if id(cell) in vertices:
                    vertices[id(cell)][1].append(below)
                    break
                vertex = (cell, [below] if below else [])
                vertices[id(cell)] = vertex
                below = vertex
                cell = cell.parent
        free = {l: list(c) for l, c in self.free[chain].items()}
        allfree = dict(self.allfree[chain])
        for vertex in roots:
            own = vertex[0].level
            level = next((l for l in range(own, len(free) + 1) if free[l]), None)
            if level is None:
                raise Broken("safety")
            if self.buddy(vertex, free, level, suggested, bindings):
                allfree[own] -= 1
            elif not self.relaxed(vertex, free, allfree, suggested, bindings, chain):
                return None
        for parent, family in families:
            if self.cells_map(family, parent.other.children, suggested, bindings) is None:
                return None
        return [bindings[id(leaf)] for leaf in leaves]

    # --- requests ---

    def place_new(self, spec, suggested):
        vc, priority = spec["vc"], spec["priority"]
        if vc not in self.vcs:
            raise UserError("vc")
        if spec["pin"]:
            if spec["pin"] not in self.pinned[vc]:
                raise UserError("pin")
            if priority < 0:
                raise UserError("opportunistic on a pinned cell")
        sizes = []
        for size in sorted(spec["members"]):
            sizes += [size] * spec["members"][size]
        if spec["pin"]:
            return self.guaranteed(spec, self.pinned[vc][spec["pin"]][1].chain, (vc, "pin", spec["pin"]), sizes, suggested)
        order = self.order
        if spec["type"]:
            if spec["type"] not in self.leaf_type.values():
                raise UserError("type")
            order = [c for c in order if self.leaf_type[c] == spec["type"]]
            if priority >= 0 and not any(c in self.vfull[vc] for c in order):
                raise UserError("type not in vc")
        for chain in order:
            if priority < 0:
                pods, _ = self.pack(self.views[None, chain], chain, sizes, priority, True, suggested)
                if pods:
                    return chain, pods, None
            elif chain in self.vfull[vc]:
                found = self.guaranteed(spec, chain, (vc, chain), sizes, suggested)
                if found:
                    return found
        return None

    def guaranteed(self, spec, chain, view, sizes, suggested):
        pods, _ = self.pack(self.views[view], chain, sizes, spec["priority"], False, suggested)
        if not pods:
            return None
        leaves = [l for pod in pods for l in pod]
        lazy = {}
        for leaf in leaves:
            p = leaf.other
            if p and p.state == "Used" and p.using and p.using.lazy:
                group = p.using
                if group.virtual is None:
                    self.notes.add("lazy without virtual")
                    continue
                lazy[group.name] = (group, group.virtual)
                self.downgrade(group, spec["group"])
        physical = self.map(chain, leaves, suggested)
        if physical is None:
            for group, virtual in lazy.values():
                for p, v in zip(self.flat(group.physical), self.flat(virtual)):
                    if p is not None:
                        self.leaf_release(p, group.vc)
                        self.leaf_allocate(p, v, group.priority, group.vc)
                group.virtual, group.preemptor = virtual, None
            return None
        places, at = [], 0
        for pod in pods:
            places.append(physical[at:at + len(pod)])
            at += len(pod)
        return chain, places, pods

    @staticmethod
    def flat(pods):
        return [l for pod in pods for l in pod]

    def downgrade(self, group, preemptor):
        for v in self.flat(group.virtual) if group.virtual else []:
            if v is None:
                continue
            p = v.other
            if p is None:
                self.notes.add("downgrade of an unbound leaf")
                continue
            self.leaf_release(p, group.vc)
            self.leaf_allocate(p, None, OPPO, group.vc)
        group.virtual = None
        group.preemptor = preemptor

    def read(self, event):
        spec = event.get("spec")
        if not isinstance(spec, dict):
            raise UserError("spec")
        r = {"vc": spec.get("virtualCluster"), "priority": spec.get("priority", 0), "pin": spec.get("pinnedCellId") or "",
             "type": spec.get("leafCellType") or "", "number": spec.get("leafCellNumber", 0),
             "lazy": bool(spec.get("lazyPreemptionEnable")), "ignore": spec.get("ignoreK8sSuggestedNodes", True)}
        if not r["vc"] or not isinstance(r["priority"], int) or not -1 <= r["priority"] <= 1000:
            raise UserError("spec")
        if not isinstance(r["number"], int) or r["number"] <= 0:
            raise UserError("number")
        group = spec.get("affinityGroup")
        if group is None:
            group = {"name": "t/" + event["pod"], "members": [{"podNumber": 1, "leafCellNumber": r["number"]}]}
        if not group.get("name"):
            raise UserError("group")
        r["group"], r["members"] = group["name"], {}
        for m in group.get("members") or []:
            if not m.get("podNumber", 0) > 0 or not m.get("leafCellNumber", 0) > 0:
                raise UserError("member")
            r["members"][m["leafCellNumber"]] = r["members"].get(m["leafCellNumber"], 0) + m["podNumber"]
        if r["number"] not in r["members"]:
            raise UserError("not a member")
        return r

    # --- groups ---

    @staticmethod
    def group_new(spec, places, state):
        g = Group()
        g.name, g.vc, g.priority, g.lazy, g.state = spec["group"], spec["vc"], spec["priority"], spec["lazy"], state
        g.preemptor, g.preempting = None, {}
        g.pods = [None] * len(places)
        g.sizes = [len(p) for p in places]
        g.physical, g.virtual = None, None
        return g

    def victims_of(self, places):
        victims, preemptors = [], []
        for p in self.flat(places):
            if p is None:
                continue
            if p.state in ("Used", "Reserving") and p.using not in victims:
                victims.append(p.using)
            if p.state in ("Reserving", "Reserved") and p.reserving not in preemptors:
                preemptors.append(p.reserving)
        return victims, preemptors

    def bind_info(self, chain, places, virtual):
        types = [[self.names[v.root.chain][v.root.level] if v is not None else "" for v in pod] for pod in virtual] \
            if virtual else [["" for _ in pod] for pod in places]
        return {"chain": chain, "pods": [(p[0].nodes[0] if p[0] else None, [l.indices[0] if l else -1 for l in p], t)
                                         for p, t in zip(places, types)]}

    def schedule(self, event, nodes):
        spec = self.read(event)
        every = set(self.node_bad)
        suggested = {n for n in every if n in nodes}
        phase = event["phase"]
        g = self.groups.get(spec["group"])
        chain = places = virtual = None
        slot, victims = 0, []
        if g:
            places, virtual, chain = g.physical, g.virtual, g.chain
            outside = any(p is not None and (not p.healthy or p.nodes[0] not in suggested) for p in self.flat(places))
            if g.state == "Allocated":
                free = [i for i, pod in enumerate(g.pods) if pod is None and g.sizes[i] == spec["number"]]
                if not free:
                    raise UserError("more pods")
                slot = free[0]
            elif phase == "Preempting" and outside:
                self.preemption_cancel(g)
            else:
                victims, _ = self.victims_of(places)
                if g.state != "Preempting":
                    raise Broken("write to a missing map")
                g.preempting[event["pod"]] = True
                slot = g.sizes.index(spec["number"]) if spec["number"] in g.sizes else 0
        if spec["group"] not in self.groups:
            found = self.place_new(spec, None if spec["ignore"] else suggested)
            if not found:
                return {"wait": True}, None, spec
            chain, places, virtual = found
            slot = [len(p) for p in places].index(spec["number"])
            victims, preemptors = self.victims_of(places)
            if phase == "Preempting":
                for other in preemptors:
                    self.preemption_cancel(other)
                if victims:
                    self.preemption_start(spec, chain, places, virtual, event["pod"])
            elif preemptors and not victims:
                self.notes.add("bind over a reservation")
        if victims:
            by = {}
            for v in victims:
                for i, pod in enumerate(v.pods):
                    if pod:
                        by.setdefault(pod[1], []).append(pod[0])
            return {"preempt": {"victimsByNode": {n: sorted(p) for n, p in sorted(by.items())}}}, None, spec
        mine = places[slot]
        lca = mine[0]
        for p in mine[1:]:
            above = {id(c) for c in [lca] + list(lca.ancestors())}
            lca = next((c for c in [p] + list(p.ancestors()) if id(c) in above), None)
        level = lca.level if lca else 0
        outcome = {"bind": {"affinityLevel": level, "chain": mine[0].chain, "leaf": [p.indices[0] for p in mine],
                            "node": mine[0].nodes[0]}}
        info = self.bind_info(chain, places, virtual)
        info["slot"] = slot
        return outcome, info, spec

    def preemption_start(self, spec, chain, places, virtual, pod):
        g = self.group_new(spec, places, "Preempting")
        g.physical, g.virtual, g.chain = places, virtual, chain
        self.groups[g.name] = g
        vs = self.flat(virtual) if virtual else [None] * len(self.flat(places))
        for p, v in zip(self.flat(places), vs):
            if p.state == "Used":
                self.leaf_release(p, p.using.vc)
                p.using.state = "BeingPreempted"
            self.leaf_allocate(p, v, g.priority, g.vc)
            p.reserving = g
            self.state_set(p, "Reserving" if p.state == "Used" else "Reserved")
        g.preempting[pod] = True

    def preemption_cancel(self, g):
        for p in self.flat(g.physical):
            self.leaf_release(p, g.vc)
            p.reserving = None
            if p.state == "Reserving":
                self.state_set(p, "Used")
                user = p.using
                v = None
                if user.virtual:
                    v = next(v for q, v in zip(self.flat(user.physical), self.flat(user.virtual)) if q is p)
                self.leaf_allocate(p, v, user.priority, user.vc)
            else:
                self.state_set(p, "Free")
        del self.groups[g.name]

    def leaf_at(self, chain, node, index):
        for c in [chain] + [c for c in self.chains if c != chain]:
            for leaf in self.full.get(c, {1: []})[1]:
                if leaf.nodes[0] == node and leaf.indices[0] == index:
                    return leaf
        return None

    def lowest(self, cells, below):
        best, low = None, below
        for v in cells:
            if v.priority == FREE:
                if not v.other:
                    return v
                continue
            if v.priority < low:
                best, low = v, v.priority
        return best

    def virtual_of(self, p, roots, level, priority):
        if p.other:
            return p.other
        if p.level == level:
            return self.lowest(roots.get(level, []), priority)
        if not p.parent:
            return None
        above = self.virtual_of(p.parent, roots, level, priority)
        return above and self.lowest(above.children, priority)

    def commit(self, spec, info, pod):
        g = self.groups.get(spec["group"])
        node, indices, _ = info["pods"][info["slot"]]
        if g:
            if g.state == "Preempting":
                for p in self.flat(g.physical):
                    p.reserving, p.using = None, g
                    self.state_set(p, "Used")
                g.state, g.preempting = "Allocated", {}
        else:
            g = self.group_new(spec, [i for _, i, _ in info["pods"]], "Allocated")
            g.chain = info["chain"]
            self.groups[g.name] = g
            g.physical = [[None] * len(i) for _, i, _ in info["pods"]]
            g.virtual = [[None] * len(i) for _, i, _ in info["pods"]]
            lazy = False
            for s, (where, numbers, types) in enumerate(info["pods"]):
                for k, (index, type_) in enumerate(zip(numbers, types)):
                    p = self.leaf_at(info["chain"], where, index)
                    if p is None:
                        continue
                    g.physical[s][k] = p
                    v = None
                    if type_ == "":
                        g.virtual = None
                    elif g.virtual is not None:
                        v = self.virtual_recover(p, type_, spec)
                        if v is None:
                            lazy = True
                        else:
                            g.virtual[s][k] = v
                            if self.in_free(p) and v.root.priority > FREE:
                                self.cell_downgrade(v.root, g.name)
                    if not self.leaf_allocate(p, v, g.priority, g.vc):
                        lazy = True
                    p.using = g
                    self.state_set(p, "Used")
            if lazy:
                self.downgrade_new(g)
        g.pods[info["slot"]] = (pod, node)

    def virtual_recover(self, p, type_, spec):
        level = next((l for l, n in self.names[p.chain].items() if n == type_), None)
        if level is None or spec["vc"] not in self.vcs:
            return None
        roots = self.roots[spec["vc"]].get(p.chain)
        if spec["pin"]:
            pin = self.pinned[spec["vc"]].get(spec["pin"])
            roots = {pin[1].level: [pin[0]]} if pin else None
        if roots is None:
            return None
        return self.virtual_of(p, roots, level, spec["priority"])

    def cell_downgrade(self, virtual, preemptor):
        if virtual.level == 1:
            if virtual.state == "Used" and virtual.other and virtual.other.using:
                self.downgrade(virtual.other.using, preemptor)
        for child in virtual.children:
            self.cell_downgrade(child, preemptor)

    def downgrade_new(self, g):
        self.downgrade(g, g.name)

    def pod_end(self, name):
        for g in list(self.groups.values()):
            for i, pod in enumerate(g.pods):
                if pod and pod[0] == name:
                    g.pods[i] = None
                    if not any(g.pods):
                        self.release(g)
                    return True
        return False

    def release(self, g):
        for p in self.flat(g.physical):
            if p is None:
                continue
            p.using = None
            if p.state == "Used":
                self.leaf_release(p, g.vc)
                self.state_set(p, "Free")
            else:
                self.state_set(p, "Reserved")
        self.groups.pop(g.name, None)

    def pod_cancel(self, pod):
        for g in list(self.groups.values()):
            if g.state == "Preempting" and g.name in self.groups and pod in self.asked and self.asked[pod] == g.name:
                g.preempting.pop(pod, None)
                if not g.preempting:
                    self.preemption_cancel(g)

    # --- check ---

    def check(self, event):
        out = {}
        if "groups" in event:
            out["groups"] = {}
            for name in event["groups"]:
                g = self.groups.get(name)
                if not g:
                    out["groups"][name] = {"exists": False}
                    continue
                place = {}
                for p in self.flat(g.physical):
                    if p is not None:
                        place.setdefault(p.nodes[0], []).append(p.indices[0])
                view = {"exists": True, "state": g.state, "lazyPreempted": g.preemptor is not None,
                        "hasVirtualPlacement": g.virtual is not None,
                        "physicalPlacement": {n: sorted(i) for n, i in place.items()}}
                if g.preemptor is not None:
                    view["preemptor"] = g.preemptor
                out["groups"][name] = view
        if "vcs" in event:
            out["vcs"] = {}
            for vc in event["vcs"]:
                tally = {}
                for root in self.tops.get(vc, []):
                    health = "Healthy" if not root.other or root.other.healthy else "Bad"
                    state = root.state
                    key = "%s|%s|%s" % (self.names[root.chain][root.level], health, state)
                    tally[key] = tally.get(key, 0) + 1
                for _, type_, _, state in self.opp.get(vc, []):
                    key = "opportunistic|%s|Healthy|%s" % (type_, state)
                    tally[key] = tally.get(key, 0) + 1
                out["vcs"][vc] = dict(sorted(tally.items()))
        if "cells" in event:
            out["cells"] = {}
            for chain in self.chains:
                for cells in self.full[chain].values():
                    for c in cells:
                        address = "/".join(map(str, c.address))
                        if address in event["cells"]:
                            root = c
                            vc = c.other.vc if c.other else ""
                            if c.level == 1 and not c.other and c.using:
                                vc = c.using.vc
                            out["cells"][address] = {"type": self.names[chain][c.level], "state": c.state,
                                                     "healthiness": "Healthy" if c.healthy else "Bad",
                                                     "priority": c.priority, "vc": vc}
        return out


class Run:
    def __init__(self, is_reversed=False):
        self.m, self.bound, self.asked, self.notes = None, [], {}, set()
        self.is_reversed = is_reversed  # tries chains from the last to the first

    def nodes(self, names):
        every = list(self.m.node_bad)
        chosen = []
        for name in names or []:
            if name == "*":
                chosen = list(every)
            elif name.startswith("-"):
                chosen = [n for n in chosen if n != name[1:]]
            elif name in every and name not in chosen:
                chosen.append(name)
        return chosen

    def event(self, e):
        op = e["op"]
        if op in ("configure", "restart"):
            try:
                m = Model(e["config"])
                if self.is_reversed:
                    m.order = m.order[::-1]
            except (Broken, ValueError, KeyError):
                return {"error": "platform"}
            if self.m:
                self.notes |= self.m.notes
            self.m = m
            m.asked = self.asked
            if op == "configure":
                self.bound, self.asked = [], {}
                m.asked = self.asked
            else:
                for n in list(m.node_bad):
                    m.node_set(n, True)
                for pod, spec, info in self.bound:
                    m.commit(spec, info, pod)
            return {"ok": True}
        m = self.m
        if m is None:
            return {"error": "platform"}
        if op in ("node_up", "node_not_ready", "node_deleted"):
            chosen = self.nodes(e["nodes"])
            for n in [n for n in m.node_bad if n in chosen]:
                m.node_set(n, op == "node_up")
            return {"ok": True}
        if op == "schedule":
            try:
                outcome, info, spec = m.schedule(e, self.nodes(e.get("suggested")))
            except UserError:
                return {"error": "user"}
            self.asked[e["pod"]] = spec["group"]
            if info and e.get("allocate", True):
                m.commit(spec, info, e["pod"])
                self.bound.append((e["pod"], spec, info))
            return outcome
        if op in ("pod_done", "pods_gone", "pod_cancelled"):
            for pod in e["pods"]:
                is_bound = any(b[0] == pod for b in self.bound)
                if op == "pod_done" or (op == "pods_gone" and is_bound):
                    self.bound = [b for b in self.bound if b[0] != pod]
                    m.pod_end(pod)
                else:
                    m.pod_cancel(pod)
            return {"ok": True}
        if op == "check":
            return m.check(e)
        raise ValueError(op)

    def run(self, events):
        out = []
        for e in events:
            try:
                out.append(self.event(e))
            except (Broken, AttributeError, TypeError, StopIteration, IndexError, KeyError) as err:
                self.notes.add("crash: %s %s" % (type(err).__name__, err))
                out.append({"error": "platform"})
        if self.m:
            self.notes |= self.m.notes
        return out
