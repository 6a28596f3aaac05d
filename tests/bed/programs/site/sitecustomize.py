"""Give the node of nova's fake driver the same uuid in every process: the driver draws a new one at each start."""

import importlib
import os
import uuid

HOST = os.environ.get("ROOST_BED_HOST")

if HOST:
    # Each part of the driver reads the uuid of its node from this table.
    table = importlib.import_module("oslo_utils.fixture").uuidsentinel
    table._sentinels[f"node_{HOST}"] = str(uuid.uuid5(uuid.NAMESPACE_DNS, HOST))
