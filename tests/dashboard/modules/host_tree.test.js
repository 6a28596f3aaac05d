import assert from "node:assert/strict";
import { test } from "node:test";
import * as tree from "../../../src/roost/dashboard/static/host/tree_data.js";

const holder = (name, resources, kind = "instance") => ({
  consumer: `uuid-of-${name}`,
  instance: `uuid-of-${name}`,
  project_id: "",
  name,
  kind,
  resources,
});
const ROOT = {
  uuid: "root",
  name: "node",
  parent: null,
  traits: [],
  inventories: { DISK_GB: { capacity: 100, used: 60 } },
  holder_count: 3,
  holders: [holder("b", { DISK_GB: 20 }), holder("a10", { DISK_GB: 30 }, "migration")],
};
const CELL = {
  uuid: "cell",
  name: "node_numa0",
  parent: "root",
  traits: [],
  inventories: { VCPU: { capacity: 4, used: 8 } },
  holder_count: 1,
  holders: [holder("b", { VCPU: 8 })],
};

test("providers are nested below their parents", () => {
  const roots = tree.nest([ROOT, CELL, { ...CELL, uuid: "lost", parent: "unknown" }]);
  assert.deepEqual(
    roots.map((node) => [node.provider.uuid, node.children.map((child) => child.provider.uuid)]),
    [
      ["root", ["cell"]],
      ["lost", []],
    ],
  );
});

test("a bar has a part for each holder, and one for those left out", () => {
  const parts = tree.segmentsOf(ROOT, "DISK_GB");
  assert.deepEqual(
    parts.map((part) => [part.name, part.amount, part.share]),
    [
      ["b", 20, 0.2],
      ["a10 (moving away)", 30, 0.3],
      ["others", 10, 0.1],
    ],
  );
});

test("a bar over its capacity is full", () => {
  assert.deepEqual(
    tree.segmentsOf(CELL, "VCPU").map((part) => part.share),
    [1],
  );
});

test("holders are listed once, by name, with all that they hold", () => {
  assert.deepEqual(
    tree.holdersOf([ROOT, CELL]).map(([, name]) => name),
    ["a10 (moving away)", "b"],
  );
  assert.deepEqual(
    tree.holdingsOf([ROOT, CELL], "uuid-of-b").map((each) => [each.provider, each.holder.resources]),
    [
      ["node", { DISK_GB: 20 }],
      ["node_numa0", { VCPU: 8 }],
    ],
  );
});

test("each processor is in one core", () => {
  const cell = {
    cpus: [0, 1, 8],
    pcpus: [4, 5],
    siblings: [
      [0, 8],
      [4, 5],
      [2, 10],
    ],
  };
  assert.deepEqual(tree.coresOf(cell), [[0, 8], [1], [4, 5]]);
});
