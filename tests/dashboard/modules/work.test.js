import assert from "node:assert/strict";
import { test } from "node:test";
import { ACTS, possibleActs } from "../../../src/roost/dashboard/static/work/acts.js";
import { progressOf, sumUp } from "../../../src/roost/dashboard/static/work/sums.js";

const all = () => true;
const active = { status: "ACTIVE", host: "node-1", operation: null, task: "" };
const kinds = (instance, may = all, isDown = false) => possibleActs(instance, may, isDown).map((act) => act.kind);

test("the status of an instance decides what people can do with it", () => {
  assert.ok(kinds(active).includes("stop"));
  assert.ok(!kinds(active).includes("start"));
  assert.ok(kinds({ ...active, status: "SHUTOFF" }).includes("start"));
  assert.deepEqual(kinds({ ...active, status: "VERIFY_RESIZE" }), ["confirm", "revert", "delete"]);
  assert.deepEqual(kinds({ ...active, status: "DELETED" }), []);
  assert.deepEqual(kinds({ ...active, status: "ERROR", host: "" }), ["delete"]);
});

test("an instance with an operation can only be deleted", () => {
  assert.deepEqual(kinds({ ...active, operation: "one", task: "powering-off" }), ["delete"]);
  assert.deepEqual(kinds({ ...active, operation: "one", task: "deleting" }), []);
});

test("a mere claim can only be released", () => {
  assert.deepEqual(kinds({ ...active, status: null }), ["delete"]);
});

test("evacuation is for hosts that are down", () => {
  assert.ok(!kinds(active).includes("evacuate"));
  assert.ok(kinds(active, all, true).includes("evacuate"));
});

test("roles decide, too", () => {
  assert.deepEqual(
    kinds(active, (policy) => policy === "instances:stop"),
    ["stop"],
  );
  assert.deepEqual(
    kinds(active, () => false),
    [],
  );
  assert.equal(new Set(ACTS.map((act) => act.kind)).size, ACTS.length);
});

test("a plan is summed up by target and by reason", () => {
  const move = (name, how, host, problem = "") => ({
    uuid: name,
    name,
    status: "ACTIVE",
    source: "a",
    how,
    host,
    problem,
  });
  const sums = sumUp([
    move("one", "live_migrate", "b"),
    move("two", "migrate", "c"),
    move("three", "live_migrate", "c"),
    move("four", "", "", "no room"),
    move("five", "offload", ""),
  ]);
  assert.deepEqual(sums.arrivals, [
    ["c", 2],
    ["b", 1],
  ]);
  assert.equal(sums.live, 2);
  assert.deepEqual(
    sums.reasons.map(([reason, moves]) => [reason, moves.map((each) => each.name)]),
    [["no room", ["four"]]],
  );
});

test("the parts of a drain add up to its instances", () => {
  const { all: whole, moved, moving, stayed, left } = progressOf({ instances: 9, left: 3, moving: 2, stayed: 1 });
  assert.equal(moved, 3);
  assert.equal(moved + moving + stayed + left, whole);
});
