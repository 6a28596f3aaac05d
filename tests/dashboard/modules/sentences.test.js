import assert from "node:assert/strict";
import { test } from "node:test";
import { headline, mainReason } from "../../../src/roost/dashboard/static/decision/sentences.js";
import { kindText } from "../../../src/roost/dashboard/static/parts/event_words.js";
import { sumUp } from "../../../src/roost/dashboard/static/work/sums.js";

const REASON =
  "0 of 120 hosts: 79 lack 32,768 MiB memory or more, 40 lack 80 GiB disk or more; room for 5 of 6 instances";

test("the main reason is that of most hosts, without the room for fewer instances", () => {
  assert.equal(mainReason(REASON), "lack 32,768 MiB memory or more");
  assert.equal(mainReason("0 of 9 hosts: 9 lack 4 VCPU or more; room for 1 of 2 instances"), "lack 4 VCPU or more");
  assert.equal(mainReason("no reason"), "");
});

test("instances that stay for the same main reason are one group", () => {
  const move = (name, problem) => ({ uuid: name, name, status: "ACTIVE", source: "a", how: "", host: "", problem });
  const { reasons } = sumUp([
    move("one", `No valid host was found. ${REASON}`),
    move("two", `No valid host was found. ${REASON.replace("40", "35")}`),
    move("three", ""),
  ]);
  assert.deepEqual(
    reasons.map(([reason, moves]) => [reason, moves.length]),
    [
      ["Hosts lack 32,768 MiB memory or more", 2],
      ["The reason is unknown.", 1],
    ],
  );
});

test("a fleet without hosts is not said to be too small", () => {
  const decision = { outcome: "refused", reason: "0 of 0 hosts" };
  const explanation = { hosts: 0, rules: [], never: { could_fit: false, reason: "0 of 0 hosts" } };
  assert.equal(headline({ decision, explanation }).strong, "There are no hosts.");
});

test("events have the words of people", () => {
  assert.equal(kindText("live_migrate.asked"), "live migrate requested");
  assert.equal(kindText("drain.stayed"), "drain stayed");
});
