import assert from "node:assert/strict";
import { test } from "node:test";
import { paletteOf } from "../../../src/roost/dashboard/static/fleet/colours.js";
import { DOWN, DRAINING } from "../../../src/roost/dashboard/static/fleet/fleet_file.js";
import { summarise } from "../../../src/roost/dashboard/static/fleet/groups.js";
import { paintRoom, paintState } from "../../../src/roost/dashboard/static/fleet/map_painter.js";
import {
  amountsOf,
  decodeRoom,
  fitText,
  SHADES,
  stepName,
  stepOf,
  STEPS,
  sumUp,
  textOf,
  totalText,
  wishOf,
} from "../../../src/roost/dashboard/static/room/room.js";

const bytesOf = (text) => [...text].map((letter) => letter.charCodeAt(0));

/** A file of columns, as docs/api-v1.md describes it. */
function fileOf(counts, isAtLeast, facts = {}) {
  const columns = [
    { name: "count", type: "uint32" },
    { name: "is_at_least", type: "uint8" },
  ];
  const known = { generation: "a", position: 7, flavor: "small", adds_up: true, warnings: [] };
  let text = JSON.stringify({ ...known, ...facts, columns });
  text += " ".repeat((4 - (text.length % 4)) % 4);
  const start = 16 + text.length;
  const buffer = new ArrayBuffer(start + 4 * counts.length + 4 * Math.ceil(counts.length / 4));
  new Uint8Array(buffer).set(bytesOf("RFS1"));
  const view = new DataView(buffer);
  view.setUint32(4, 1, true);
  view.setUint32(8, counts.length, true);
  view.setUint32(12, text.length, true);
  new Uint8Array(buffer).set(bytesOf(text), 16);
  counts.forEach((value, at) => view.setUint32(start + 4 * at, value, true));
  new Uint8Array(buffer).set(isAtLeast, start + 4 * counts.length);
  return buffer;
}

test("the answer of the server is decoded", () => {
  const room = decodeRoom(fileOf([0, 1, 70_000], [0, 0, 1], { adds_up: false, warnings: ["some"] }));
  assert.deepEqual([...room.counts], [0, 1, 70_000]);
  assert.deepEqual([...room.isAtLeast], [0, 0, 1]);
  assert.deepEqual([room.generation, room.hosts, room.addsUp, room.warnings], ["a", 3, false, ["some"]]);
});

test("each count has one step, and the steps have shades in their order", () => {
  for (const [step, from] of STEPS.entries()) {
    assert.equal(stepOf(from), step);
    if (from) assert.equal(stepOf(from - 1), step - 1);
  }
  assert.equal(stepOf(4_000_000_000), STEPS.length - 1);
  assert.deepEqual(
    STEPS.map((_, step) => stepName(step)),
    ["0", "1", "2–3", "4–7", "8–15", "16–31", "32 or more"],
  );
  assert.deepEqual(
    SHADES,
    [...SHADES].sort((left, right) => left - right),
  );
  assert.equal(SHADES.length, STEPS.length);
});

test("the legend has the hosts of each step, and the sum", () => {
  const room = decodeRoom(fileOf([0, 0, 1, 3, 40], [0, 0, 0, 0, 0]));
  assert.deepEqual(sumUp(room), { hosts: [2, 1, 1, 0, 0, 0, 1], total: 44, isCut: false });
  assert.equal(totalText(room, "small"), "44 more small fit");
  assert.equal(totalText(decodeRoom(fileOf([1], [0])), "small"), "1 more small fits");
  assert.equal(totalText(decodeRoom(fileOf([9], [1])), "small"), "at least 9 more small fit");
  const shared = decodeRoom(fileOf([9, 9], [0, 0], { adds_up: false }));
  assert.equal(totalText(shared, "small"), "each alone, together at most 18 more small fit");
});

test("a host says how many more fit", () => {
  const room = decodeRoom(fileOf([0, 1, 1200, 7], [0, 0, 0, 1]));
  assert.deepEqual(
    [0, 1, 2, 3].map((host) => fitText(room, host)),
    ["no more fits", "1 more fits", "1,200 more fit", "at least 7 more fit"],
  );
});

test("a text is amounts, or the name of a flavor", () => {
  assert.deepEqual(amountsOf("vcpus=4,memory_mb=8192"), { vcpus: 4, memory_mb: 8192, root_gb: 0 });
  assert.equal(textOf(amountsOf("root_gb=2")), "vcpus=0,memory_mb=0,root_gb=2");
  for (const name of ["", "small", "vcpus=", "vcpus=-1", "vcpus=1,disk=2", "vcpus=1.5"])
    assert.equal(amountsOf(name), null);
  const small = { name: "small", request: { flavor: { name: "small", vcpus: 1 } } };
  const odd = { name: "vcpus=1", request: { flavor: { name: "vcpus=1", vcpus: 9 } } };
  assert.equal(wishOf("small", [small]), small);
  assert.equal(wishOf("vcpus=1", [odd]), odd);
  assert.equal(wishOf("large", [small]), undefined);
  assert.deepEqual(wishOf("vcpus=2", [small]).request, { flavor: { name: "", vcpus: 2, memory_mb: 0, root_gb: 0 } });
});

test("more room is further along the scale, and hosts that are down or draining keep their colours", () => {
  const palette = paletteOf(false);
  const fleet = { states: Uint8Array.of(0, 0, DOWN, DRAINING) };
  const paint = paintRoom(fleet, decodeRoom(fileOf([0, 40, 5, 5], [0, 0, 0, 0])), palette);
  assert.deepEqual([0, 1, 2, 3].map(paint), [palette.table[0], palette.table[1000], palette.down, palette.draining]);
  assert.equal(paintRoom(fleet, null, palette)(0), palette.none);
  assert.equal(paintState(fleet, palette)(3), palette.draining);
});

test("groups have the sum of their hosts", () => {
  const fleet = { shares: [Uint16Array.of(0, 500, 1000)], states: Uint8Array.of(0, 0, 0) };
  const groups = [
    { name: "one", blocks: [{ name: "", hosts: [0, 2] }] },
    { name: "two", blocks: [{ name: "", hosts: [1] }] },
  ];
  const room = decodeRoom(fileOf([5, 6, 7], [0, 0, 0]));
  assert.deepEqual(
    summarise(fleet, groups, 0, room).map((each) => each.fits),
    [12, 6],
  );
  assert.deepEqual(
    summarise(fleet, groups, 0).map((each) => each.fits),
    [null, null],
  );
});
