import assert from "node:assert/strict";
import { test } from "node:test";
import { ACTS, possibleActs } from "../../../src/roost/dashboard/static/work/acts.js";
import {
  drainPlanOf,
  planProgressOf,
  progressOf,
  sumUp,
  windowsIn,
} from "../../../src/roost/dashboard/static/work/sums.js";

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

test("the progress of an applied plan counts its moves by state", () => {
  const states = ["done", "done", "moving", "waiting", "waiting", "waiting", "failed", "skipped"];
  assert.deepEqual(planProgressOf({ moves: states.map((state) => ({ state })) }), {
    all: 8,
    moved: 2,
    moving: 1,
    failed: 1,
    skipped: 1,
    stayed: 2,
    left: 3,
  });
});

test("windows are separated by blanks or semicolons, since weekdays have commas", () => {
  assert.deepEqual(windowsIn(" 22:00-06:00; sat,sun@08:00-20:00 "), ["22:00-06:00", "sat,sun@08:00-20:00"]);
  assert.deepEqual(windowsIn(""), []);
});

const roomMove = {
  number: 1,
  instance_uuid: "u1",
  instance: "cache",
  source: "b",
  target: "c",
  how: "live_migrate",
  memory_mb: 16,
  reason: "makes room on b for db",
  after: [],
};
const stayer = { instance_uuid: "u3", instance: "big", host: "a", problem: "no room" };
const answer = {
  hosts: 2,
  emptied: [{ host: "b" }],
  extra: 1,
  moves: [roomMove, { ...roomMove, number: 2, instance_uuid: "u2", source: "a", reason: "leaves a", after: [1] }],
  staying: [stayer],
  problem: "1 of 2 hosts would not be emptied",
  is_cut: true,
  is_over_budget: false,
};

test("a plan with moves of other instances has its steps, its text and those that stay", () => {
  const plan = drainPlanOf(answer);
  assert.equal(plan.text, "1 of 2 hosts would be empty after 2 moves, 1 of them to make room.");
  assert.equal(plan.note, "The search ended at its limit: a better plan may exist.");
  assert.deepEqual(plan.steps[1], { number: 2, instance_uuid: "u2", source: "a", target: "c", after: [1] });
  const { going, reasons } = sumUp(plan.moves);
  assert.deepEqual(
    going.map(({ number, name, source, host, reason }) => [number, name, source, host, reason]),
    [
      [1, "cache", "b", "c", "makes room on b for db"],
      [2, "cache", "a", "c", "leaves a"],
    ],
  );
  assert.deepEqual(
    reasons.map(([reason, moves]) => [reason, moves.map((each) => [each.name, each.source])]),
    [["no room", [["big", "a"]]]],
  );
});

test("a plan says why its search ended, if it did", () => {
  assert.match(drainPlanOf({ ...answer, is_over_budget: true }).note, /time budget of the server/);
  assert.equal(drainPlanOf({ ...answer, is_cut: false }).note, "");
  const none = { ...answer, moves: [], staying: [], extra: 0, problem: "" };
  assert.equal(drainPlanOf(none).text, "2 hosts without instances: no move is needed.");
});
