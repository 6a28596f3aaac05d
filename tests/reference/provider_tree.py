"""A slow, obvious provider tree: nested dictionaries that are searched from the top."""
# ruff: noqa: D102  # the methods are named as those of the tree that they follow

import copy


class PlainTree:
    """The methods of a provider tree on nested dictionaries."""

    def __init__(self, new_uuid):
        self.roots = {}  # uuid -> provider; its children are in the same form
        self.new_uuid = new_uuid

    def walk(self, level=None, parent=None):
        """Yield every provider with its parent and the dictionary of its siblings, parents first."""
        level = self.roots if level is None else level
        for provider in level.values():
            yield provider, parent, level
            yield from self.walk(provider["children"], provider)

    def locate(self, wanted):
        """Return the single provider with a uuid or name, its parent, and its siblings."""
        places = list(self.walk())
        found = [place for place in places if place[0]["uuid"] == wanted]
        found = found or [place for place in places if place[0]["name"] == wanted]
        if len(found) != 1:
            raise ValueError(wanted)
        return found[0]

    def find(self, wanted):
        return self.locate(wanted)[0]

    def exists(self, wanted):
        return any(wanted in (provider["uuid"], provider["name"]) for provider, _, _ in self.walk())

    def insert(self, level, uuid, name, generation):
        level[uuid] = {
            "uuid": uuid,
            "name": name,
            "generation": generation,
            "inventory": {},
            "traits": set(),
            "aggregates": set(),
            "resources": {},
            "children": {},
        }
        return uuid

    def has_uuid(self, uuid):
        return any(provider["uuid"] == uuid for provider, _, _ in self.walk())

    def new_root(self, name, uuid, generation=None):
        if self.has_uuid(uuid):
            raise ValueError(uuid)
        return self.insert(self.roots, uuid, name, generation)

    def new_child(self, name, parent, uuid=None, generation=None):
        fresh = self.new_uuid() if uuid is None else uuid
        if self.exists(name) if uuid is None else self.has_uuid(uuid):
            raise ValueError(name)
        return self.insert(self.find(parent)["children"], fresh, name, generation)

    def remove(self, wanted):
        provider, _, siblings = self.locate(wanted)
        del siblings[provider["uuid"]]

    def populate_from_iterable(self, records):
        waiting = {record["uuid"]: record for record in records}
        result = PlainTree(self.new_uuid)
        result.roots = copy.deepcopy(self.roots)
        for uuid in waiting:
            if result.has_uuid(uuid):
                result.remove(uuid)
        while waiting:
            ready = [
                record
                for record in waiting.values()
                if record["parent_provider_uuid"] is None or result.has_uuid(record["parent_provider_uuid"])
            ]
            if not ready:
                raise ValueError(waiting)
            for record in ready:
                parent = record["parent_provider_uuid"]
                level = result.roots if parent is None else result.find(parent)["children"]
                result.insert(level, record["uuid"], record["name"], record["generation"])
                del waiting[record["uuid"]]
        self.roots = result.roots

    def get_provider_uuids(self, wanted=None):
        level = self.roots if wanted is None else {None: self.find(wanted)}
        return [provider["uuid"] for provider, _, _ in self.walk(level)]

    def get_provider_uuids_in_tree(self, wanted):
        uuid = self.find(wanted)["uuid"]
        return next(uuids for uuids in map(self.get_provider_uuids, self.roots) if uuid in uuids)

    def update_inventory(self, wanted, inventory, generation=None):
        provider = self.find(wanted)
        if generation is not None:
            provider["generation"] = generation
        old = provider["inventory"]
        # A key that the new record omits is unchanged.
        if set(old) == set(inventory) and all({**old[each], **inventory[each]} == old[each] for each in inventory):
            return False
        provider["inventory"] = copy.deepcopy(inventory)
        return True

    def update(self, kind, wanted, value, generation=None):
        provider = self.find(wanted)
        if generation is not None:
            provider["generation"] = generation
        before, provider[kind] = provider[kind], copy.deepcopy(value)
        return before != value

    def update_traits(self, wanted, traits, generation=None):
        return self.update("traits", wanted, traits, generation)

    def add_traits(self, wanted, *traits):
        self.find(wanted)["traits"] |= set(traits)

    def remove_traits(self, wanted, *traits):
        self.find(wanted)["traits"] -= set(traits)

    def update_aggregates(self, wanted, aggregates, generation=None):
        return self.update("aggregates", wanted, aggregates, generation)

    def add_aggregates(self, wanted, *aggregates):
        self.find(wanted)["aggregates"] |= set(aggregates)

    def remove_aggregates(self, wanted, *aggregates):
        self.find(wanted)["aggregates"] -= set(aggregates)

    def update_resources(self, wanted, resources):
        return self.update("resources", wanted, resources)

    def has_sharing_provider(self, resource_class):
        return any(
            resource_class in provider["inventory"] and "MISC_SHARES_VIA_AGGREGATE" in provider["traits"]
            for provider, _, _ in self.walk()
        )
