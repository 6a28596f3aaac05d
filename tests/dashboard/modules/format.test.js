import assert from "node:assert/strict";
import { test } from "node:test";
import * as format from "../../../src/roost/dashboard/static/page/format.js";
import { isBefore, orderByName } from "../../../src/roost/dashboard/static/fleet/name_order.js";

test("amounts have the units of the command line", () => {
  assert.equal(format.amount("MEMORY_MB", 77824), "77,824 MiB");
  assert.equal(format.amount("VCPU", 11400), "11,400");
  assert.equal(format.shortAmount("MEMORY_MB", 598016), "584 GiB");
  assert.equal(format.shortAmount("DISK_GB", 1536), "1.5 TiB");
  assert.equal(format.percent(0.9087), "90.9%");
  assert.equal(format.counted(1, "host"), "1 host");
  assert.equal(format.counted(1523, "host"), "1,523 hosts");
});

test("numbers have groups of three digits and at most three decimals", () => {
  const intl = new Intl.NumberFormat("en-US");
  for (const value of [0, 7, 999, 1000, 1234567, -1234, -5, 0.5, 1234.5678, 0.0001, 12.3456, 2 ** 53])
    assert.equal(format.count(value), intl.format(value));
});

test("ages and times are short", () => {
  assert.equal(format.age(100, 175), "1 m ago");
  assert.equal(format.shortTime(0.000196), "196 µs");
  assert.equal(format.shortTime(0.0824), "82.4 ms");
  assert.equal(format.dateTime(0), "1970-01-01 00:00:00 UTC");
});

test("names sort as people count", () => {
  const names = ["host-10", "host-9", "Host-1", "host-0100", "rack2-host1", "rack10-host1"];
  const sorted = [...names].sort((left, right) => (format.sortKey(left) < format.sortKey(right) ? -1 : 1));
  assert.deepEqual(sorted, ["Host-1", "host-9", "host-10", "host-0100", "rack2-host1", "rack10-host1"]);
});

test("the quick look at two names agrees with their keys", () => {
  let state = 7;
  const next = (limit) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state >>> 8) % limit;
  };
  const parts = ["0", "00", "7", "9", "10", "99", "100", "a", "b", "B", "-", ".", "é", "1".repeat(80), "2".repeat(71)];
  const seen = { before: 0, closer: 0 };
  for (let turn = 0; turn < 20_000; turn += 1) {
    const [left, right] = [0, 1].map(() => Array.from({ length: next(4) }, () => parts[next(parts.length)]).join(""));
    const isInOrder = format.sortKey(left) <= format.sortKey(right);
    if (isBefore(left, right)) assert.ok(isInOrder, `${left} ${right}`);
    seen[isBefore(left, right) ? "before" : "closer"] += 1;
  }
  assert.ok(seen.before > 2000 && seen.closer > 2000);
});

test("hosts have one order, sorted or not", () => {
  const sorted = ["a1", "a2", "a10", "b1"];
  assert.deepEqual([...orderByName({ hosts: 4 }, (host) => sorted[host])], [0, 1, 2, 3]);
  const mixed = ["b1", "a10", "A2", "a1"];
  assert.deepEqual([...orderByName({ hosts: 4 }, (host) => mixed[host])], [3, 2, 1, 0]);
});
