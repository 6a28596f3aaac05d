import assert from "node:assert/strict";
import { test } from "node:test";
import { DISABLED, NONE } from "../../../src/roost/dashboard/static/fleet/fleet_file.js";
import { rowsOf, useOf } from "../../../src/roost/dashboard/static/host/host_rows.js";

const NAMES = ["host-10", "host-9", "host-8"];
const FLEET = {
  hosts: 3,
  classes: ["VCPU", "MEMORY_MB"],
  shares: [Uint16Array.of(500, 0, 1000), Uint16Array.of(250, 900, NONE)],
  instances: Uint16Array.of(3, 1, 9),
  states: Uint8Array.of(0, DISABLED, 0),
  place: Uint16Array.of(0, 0, 1),
  places: [
    { zone: "east", aggregates: [] },
    { zone: "west", aggregates: [] },
  ],
  rack: Uint16Array.of(0, 1, 1),
  racks: ["rack-1", "rack-7"],
  kind: Uint16Array.of(0, 0, 1),
  kinds: [{ VCPU: 8, MEMORY_MB: 4096 }, { VCPU: 4 }],
};
const wanted = { sort: "", state: 0, text: "", limit: 10 };
const names = (more) => rowsOf(FLEET, (host) => NAMES[host], { ...wanted, ...more }).rows.map((row) => row.name);

test("hosts are in the order of their names, as people count", () => {
  assert.deepEqual(names({}), ["host-8", "host-9", "host-10"]);
});

test("the hosts with the least free memory come first, and those without memory are left out", () => {
  assert.deepEqual(names({ sort: "MEMORY_MB" }), ["host-9", "host-10"]);
});

test("a text finds names, zones and racks, and a state its hosts", () => {
  assert.deepEqual(names({ text: "Rack-7" }), ["host-8", "host-9"]);
  assert.deepEqual(names({ text: "east" }), ["host-9", "host-10"]);
  assert.deepEqual(names({ state: DISABLED }), ["host-9"]);
});

test("a limit cuts the rows and not their number", () => {
  const { rows, found } = rowsOf(FLEET, (host) => NAMES[host], { ...wanted, limit: 1 });
  assert.deepEqual([rows.length, found], [1, 3]);
});

test("a row has the use of each class", () => {
  assert.deepEqual(useOf(FLEET, 1, 0), { share: 0.25, free: 3072 });
  assert.equal(useOf(FLEET, 1, 2), null);
});
