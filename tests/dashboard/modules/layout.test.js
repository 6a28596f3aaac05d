import assert from "node:assert/strict";
import { test } from "node:test";
import { layOut } from "../../../src/roost/dashboard/static/fleet/layout.js";

/** A generator of pseudo-random numbers with a seed. */
function random(seed) {
  let state = seed;
  return (limit) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state % limit;
  };
}

function fleetOf(seed) {
  const next = random(seed);
  let host = 0;
  const groups = Array.from({ length: 1 + next(9) }, (_, zone) => ({
    name: `zone-${zone}`,
    blocks: Array.from({ length: 1 + next(30) }, (_unused, rack) => ({
      name: `rack-${rack}`,
      hosts: Array.from({ length: 1 + next(60) }, () => host++),
    })),
  }));
  return { groups, hosts: host };
}

for (let seed = 0; seed < 60; seed += 1) {
  test(`every host has one cell of its own, in order, and no cells overlap (seed ${seed})`, () => {
    const { groups, hosts } = fleetOf(seed);
    const ratio = 1 + (seed % 2);
    const layout = layOut(groups, { width: 400 + 17 * seed * ratio, height: 300 + 11 * seed, ratio, hosts });
    const seen = new Set();
    layout.areas.forEach((area, number) => {
      for (const [cell, host] of area.at.entries()) {
        if (host < 0) continue;
        assert.ok(!seen.has(host), `host ${host} has two cells`);
        seen.add(host);
        assert.equal(layout.areaOf[host], number);
        assert.equal(layout.cellOf[host], cell);
      }
      for (const [at, block] of area.blocks.entries()) {
        const cells = groups[number].blocks[at].hosts.map((host) => layout.cellOf[host]);
        const order = cells.map((cell) => {
          const [row, column] = [Math.floor(cell / area.columns), cell % area.columns];
          assert.ok(row >= block.row && row < block.row + block.rows, "a host is in the rows of its block");
          assert.ok(column >= block.column && column < block.column + block.columns, "and in its columns");
          return (row - block.row) * block.columns + (column - block.column);
        });
        assert.deepEqual(
          order,
          order.map((_, index) => index),
          "hosts of a block keep their order",
        );
      }
    });
    assert.equal(seen.size, hosts);
    for (const [at, one] of layout.areas.entries()) {
      for (const other of layout.areas.slice(at + 1)) {
        const apart =
          one.left + one.columns * layout.pitch <= other.left ||
          other.left + other.columns * layout.pitch <= one.left ||
          one.top + one.rows * layout.pitch <= other.top ||
          other.top + other.rows * layout.pitch <= one.top;
        assert.ok(apart, `${one.name} and ${other.name} overlap`);
      }
    }
    assert.ok(Number.isInteger(layout.pitch) && layout.pitch >= 2);
  });
}

test("a hundred thousand hosts fit a screen with two pixels each", () => {
  let host = 0;
  const groups = Array.from({ length: 10 }, (_, zone) => ({
    name: `zone-${zone}`,
    blocks: Array.from({ length: 250 }, (_unused, rack) => ({
      name: `rack-${rack}`,
      hosts: Int32Array.from({ length: 40 }, () => host++),
    })),
  }));
  const layout = layOut(groups, { width: 1192, height: 690, ratio: 1, hosts: host });
  assert.equal(layout.pitch, 2);
  assert.equal(layout.height, 690);
});
