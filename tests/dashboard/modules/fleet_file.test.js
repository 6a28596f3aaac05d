import assert from "node:assert/strict";
import { test } from "node:test";
import { applyDelta, NONE } from "../../../src/roost/dashboard/static/fleet/fleet_file.js";

function fleetOf() {
  return {
    generation: "a",
    position: 7,
    hosts: 3,
    classes: ["VCPU", "DISK_GB"],
    shares: [Uint16Array.of(0, 500, 1000), Uint16Array.of(NONE, 1, 2)],
    instances: Uint16Array.of(0, 1, 2),
    states: Uint8Array.of(0, 0, 4),
  };
}

test("a delta sets the values of its hosts, and nothing else", () => {
  const fleet = fleetOf();
  const delta = { generation: "a", position: 9, hosts: [[1, 750, 12, 4, 1]] };
  assert.deepEqual(applyDelta(fleet, delta), [1]);
  assert.deepEqual([...fleet.shares[0]], [0, 750, 1000]);
  assert.deepEqual([...fleet.shares[1]], [NONE, 12, 2]);
  assert.deepEqual([...fleet.instances], [0, 4, 2]);
  assert.deepEqual([...fleet.states], [0, 1, 4]);
  assert.equal(fleet.position, 9);
});

test("another generation, a reload and an unknown host need the columns anew", () => {
  for (const delta of [
    { generation: "b", position: 9, hosts: [] },
    { generation: "a", position: 9, reload: true },
    { generation: "a", position: 9, hosts: [[3, 0, 0, 0, 0]] },
  ])
    assert.equal(applyDelta(fleetOf(), delta), null);
});

test("an older delta does not move the position back", () => {
  const fleet = fleetOf();
  applyDelta(fleet, { generation: "a", position: 3, hosts: [] });
  assert.equal(fleet.position, 7);
});
