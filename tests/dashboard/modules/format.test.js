import assert from "node:assert/strict";
import { test } from "node:test";
import * as format from "../../../src/roost/dashboard/static/page/format.js";
import { sortKey } from "../../../src/roost/dashboard/static/fleet/groups.js";

test("amounts have the units of the command line", () => {
  assert.equal(format.amount("MEMORY_MB", 77824), "77,824 MiB");
  assert.equal(format.amount("VCPU", 11400), "11,400");
  assert.equal(format.shortAmount("MEMORY_MB", 598016), "584 GiB");
  assert.equal(format.shortAmount("DISK_GB", 1536), "1.5 TiB");
  assert.equal(format.percent(0.9087), "90.9%");
  assert.equal(format.counted(1, "host"), "1 host");
  assert.equal(format.counted(1523, "host"), "1,523 hosts");
});

test("ages and times are short", () => {
  assert.equal(format.age(100, 175), "1 m ago");
  assert.equal(format.shortTime(0.000196), "196 µs");
  assert.equal(format.shortTime(0.0824), "82.4 ms");
  assert.equal(format.dateTime(0), "1970-01-01 00:00:00 UTC");
});

test("names sort as people count", () => {
  const names = ["host-10", "host-9", "Host-1", "host-0100", "rack2-host1", "rack10-host1"];
  const sorted = [...names].sort((left, right) => (sortKey(left) < sortKey(right) ? -1 : 1));
  assert.deepEqual(sorted, ["Host-1", "host-9", "host-10", "host-0100", "rack2-host1", "rack10-host1"]);
});
