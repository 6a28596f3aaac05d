import assert from "node:assert/strict";
import { test } from "node:test";
import { layOut } from "../../../src/roost/dashboard/static/fleet/layout.js";
import {
  fitted,
  hostNear,
  keepView,
  levelBefore,
  levelsAt,
  nextLevel,
  pathOf,
} from "../../../src/roost/dashboard/static/fleet/levels.js";

const SIZE = { width: 1100, height: 700, ratio: 1 };

/** A map of zones with racks of hosts, numbered in order. */
function mapOf(zones, racks, hosts, size = SIZE) {
  let next = 0;
  const groups = Array.from({ length: zones }, (_, zone) => ({
    name: `zone-${zone}`,
    blocks: Array.from({ length: racks }, (_, rack) => ({
      name: `rack-${zone}-${rack}`,
      hosts: Array.from({ length: hosts }, () => next++),
    })),
  }));
  return layOut(groups, { ...size, hosts: next });
}

/** Where the middle of a host is on the canvas. */
function middleOf(layout, view, host) {
  const area = layout.areas[layout.areaOf[host]];
  const [row, column] = [Math.floor(layout.cellOf[host] / area.columns), layout.cellOf[host] % area.columns];
  return {
    x: (area.left + (column + 0.5) * layout.pitch) * view.zoom - view.x,
    y: (area.top + (row + 0.5) * layout.pitch) * view.zoom - view.y,
  };
}

for (const [zones, racks, hosts] of [
  [3, 20, 40],
  [10, 250, 40],
  [1, 1, 3],
  [2, 1, 500],
])
  test(`each level is nearer and shows its host: ${zones} zones, ${racks} racks, ${hosts} hosts`, () => {
    const layout = mapOf(zones, racks, hosts);
    for (const host of [0, Math.floor(layout.areaOf.length / 2), layout.areaOf.length - 1]) {
      const levels = levelsAt(layout, SIZE, host);
      assert.equal(levels[0].name, "Fleet");
      assert.deepEqual(levels[0].view, fitted(layout, SIZE));
      for (const [at, { view }] of levels.slice(1).entries()) {
        assert.ok(view.zoom > 1.1 * levels[at].view.zoom);
        const { x, y } = middleOf(layout, view, host);
        assert.ok(x >= 0 && y >= 0 && x <= SIZE.width && y <= SIZE.height, levels[at + 1].name);
      }
      // A host has its name in its cell at the last level.
      assert.ok(layout.pitch * levels.at(-1).view.zoom >= 70);
    }
  });

test("a double click goes from the fleet to a group, a rack, the hosts, and then to the page of the host", () => {
  const layout = mapOf(10, 25, 400);
  const levels = levelsAt(layout, SIZE, 54_321);
  const names = [];
  let view = fitted(layout, SIZE);
  for (let level = nextLevel(levels, view); level; level = nextLevel(levels, view)) {
    names.push(level.name);
    view = level.view;
  }
  assert.deepEqual(names, ["zone-5", "rack-5-10", "hosts"]);
  assert.deepEqual(
    pathOf(levels, view).map((level) => level.name),
    ["Fleet", ...names],
  );
  const back = [];
  for (let level = levelBefore(levels, view); level; level = levelBefore(levels, view)) {
    back.push(level.name);
    view = level.view;
  }
  assert.deepEqual(back, ["rack-5-10", "zone-5", "Fleet"]);
  assert.deepEqual(view, fitted(layout, SIZE));
});

test("a view between two levels goes to the next one, and back to the one before", () => {
  const layout = mapOf(3, 20, 40);
  const levels = levelsAt(layout, SIZE, 100);
  const zoom = 0.9 * levels.at(-1).view.zoom;
  const view = { zoom, x: 0, y: 0 };
  assert.equal(levelBefore(levels, view), levels.at(-2));
  assert.equal(nextLevel(levels, { ...view, zoom: 1.3 * levels[0].view.zoom }).view.zoom >= 1.5, true);
});

test("the nearest host is found at cells, gaps and outside of the map", () => {
  const layout = mapOf(3, 20, 40);
  const view = fitted(layout, SIZE);
  for (const host of [0, 777, 2399]) assert.equal(hostNear(layout, view, middleOf(layout, view, host)), host);
  assert.equal(hostNear(layout, view, { x: -500, y: -500 }), 0);
  assert.ok(hostNear(layout, view, { x: 5000, y: 5000 }) >= 0);
  assert.equal(hostNear(layOut([], { ...SIZE, hosts: 0 }), view, { x: 1, y: 1 }), -1);
});

test("another size of the map keeps the hosts in sight; other groups show the whole fleet", () => {
  const layout = mapOf(10, 250, 40);
  const near = levelsAt(layout, SIZE, 54_321).at(-1).view;
  const size = { ...SIZE, width: 800 };
  const narrow = mapOf(10, 250, 40, size);
  const view = keepView(layout, near, SIZE, narrow, size);
  const { x, y } = middleOf(narrow, view, 54_321);
  assert.ok(x > 0 && y > 0 && x < size.width && y < size.height, `${x}, ${y}`);
  assert.equal(Math.round(narrow.pitch * view.zoom), Math.round(layout.pitch * near.zoom));
  assert.deepEqual(keepView(layout, fitted(layout, SIZE), SIZE, narrow, size), fitted(narrow, size));
  const other = mapOf(5, 250, 40);
  assert.deepEqual(keepView(layout, near, SIZE, other, SIZE), fitted(other, SIZE));
});
