import assert from "node:assert/strict";
import { test } from "node:test";
import { daysLeft, daysText, leftText, lineAt, trendOf } from "../../../src/roost/dashboard/static/capacity/trend.js";
import { outlooksOf, outlookWith, projectionOf } from "../../../src/roost/dashboard/static/capacity/outlook.js";

const DAY = 86_400;
const times = Array.from({ length: 97 }, (_, at) => 1_700_000_000 + at * 900); // one day

/** Numbers between -1 and 1 that look random and are the same in each run. @param {number} seed */
function noise(seed) {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return (2 * state) / 2_147_483_648 - 1;
  };
}

const line = (/** @type {number} */ from, /** @type {number} */ perDay) =>
  times.map((time) => from + (perDay * (time - times[0])) / DAY);

test("a line is its own trend, without uncertainty", () => {
  const trend = trendOf(times, line(100, 50));
  assert.ok(trend);
  for (const slope of [trend.perDay, trend.low, trend.high]) assert.ok(Math.abs(slope - 50) < 1e-6, String(slope));
  assert.ok(Math.abs(trend.value - 150) < 1e-6);
  assert.ok(Math.abs(lineAt(trend, trend.perDay, times[0]) - 100) < 1e-6);
});

test("the days left follow from the slope and its bounds", () => {
  const trend = { perDay: 10, low: 5, high: 20, at: 0, value: 0, points: 9 };
  assert.deepEqual(daysLeft(100, trend), { days: 10, soonest: 5, latest: 20 });
  assert.deepEqual(daysLeft(0, trend), { days: 0, soonest: 0, latest: 0 });
  assert.deepEqual(daysLeft(-5, trend).days, 0);
  assert.deepEqual(daysLeft(100, { ...trend, low: -1 }), { days: 10, soonest: 5, latest: Infinity });
  assert.deepEqual(daysLeft(100, { ...trend, perDay: -1, low: -2, high: 2 }), {
    days: Infinity,
    soonest: 50,
    latest: Infinity,
  });
});

test("outliers change the trend little", () => {
  const values = line(100, 50);
  for (const at of [5, 40, 41, 42, 80]) values[at] = 100_000;
  const trend = trendOf(times, values);
  assert.ok(trend && Math.abs(trend.perDay - 50) < 1, String(trend?.perDay));
});

test("unknown values are left out", () => {
  const values = line(100, 50).map((value, at) => (at % 3 ? null : value));
  assert.ok(Math.abs((trendOf(times, values)?.perDay ?? 0) - 50) < 1e-6);
});

test("too few points have no trend", () => {
  assert.equal(trendOf([], []), null);
  assert.equal(
    trendOf(
      times,
      times.map(() => null),
    ),
    null,
  );
  assert.equal(trendOf(times.slice(0, 7), line(1, 1).slice(0, 7)), null);
  const seconds = times.map((_, at) => at); // 97 points within two minutes
  assert.equal(trendOf(seconds, line(1, 1)), null);
});

test("the interval holds the true slope of noisy lines in most cases", () => {
  let held = 0;
  for (let seed = 1; seed <= 60; seed += 1) {
    const next = noise(seed * 7919);
    const trend = trendOf(
      times,
      line(100, 50).map((value) => value + 30 * next()),
    );
    if (trend && trend.low <= 50 && 50 <= trend.high) held += 1;
  }
  assert.ok(held >= 48, `${held} of 60`);
});

test("noise that lasts makes the interval wider, and the interval still holds the true slope", () => {
  let held = 0;
  let quickWidth = 0;
  let slowWidth = 0;
  for (let seed = 1; seed <= 60; seed += 1) {
    const next = noise(seed * 104_729);
    for (let at = 0; at < 100; at += 1) next();
    const quick = trendOf(
      times,
      line(100, 50).map((value) => value + 7 * next()),
    );
    let drift = 0;
    const slow = trendOf(
      times,
      line(100, 50).map((value) => value + (drift = 0.9 * drift + 3 * next())),
    );
    assert.ok(quick && slow);
    quickWidth += quick.high - quick.low;
    slowWidth += slow.high - slow.low;
    if (slow.low <= 50 && 50 <= slow.high) held += 1;
  }
  assert.ok(slowWidth > 2 * quickWidth, `${slowWidth} ${quickWidth}`);
  assert.ok(held >= 46, `${held} of 60`);
});

test("a level series has no end in sight", () => {
  const trend = trendOf(
    times,
    times.map(() => 70),
  );
  assert.ok(trend);
  assert.deepEqual(leftText(daysLeft(30, trend)), { main: "no end in sight", more: "" });
});

test("days have the unit that fits", () => {
  assert.equal(daysText(12.4), "12 days");
  assert.equal(daysText(1), "24 hours");
  assert.equal(daysText(0.01), "less than 2 hours");
  assert.equal(daysText(0), "none: it is full");
  assert.equal(daysText(800), "2 years");
  assert.equal(daysText(1e9), "more than 10 years");
  assert.deepEqual(leftText({ days: 12, soonest: 9, latest: 17 }), { main: "12 days", more: "9 to 17 days" });
  assert.deepEqual(leftText({ days: 12, soonest: 9, latest: Infinity }), { main: "12 days", more: "9 days to no end" });
  assert.equal(leftText({ days: 3, soonest: 1, latest: 4 }).more, "24 hours to 4 days");
  assert.deepEqual(leftText({ days: Infinity, soonest: 40, latest: Infinity }), {
    main: "no end in sight",
    more: "40 days at the earliest",
  });
});

const history = () => ({
  times,
  step_s: 900,
  zones: ["east", "west"],
  classes: [
    { resource_class: "DISK_GB", capacity: times.map(() => 1000), used: line(0, 10) },
    { resource_class: "VCPU", capacity: times.map(() => 400), used: line(300, 50) },
    { resource_class: "MEMORY_MB", capacity: times.map(() => 0), used: times.map(() => 0) },
  ].map((each) => ({ ...each, stranded: times.map(() => 4), unusable: times.map(() => 6) })),
});

test("the class that runs out first comes first", () => {
  const outlooks = outlooksOf(history());
  assert.deepEqual(
    outlooks.map((each) => each.name),
    ["VCPU", "DISK_GB", "MEMORY_MB"],
  );
  const [vcpu] = outlooks;
  assert.ok(vcpu?.left && Math.abs(vcpu.left.days - 1) < 1e-6);
  assert.equal(vcpu.stranded, 10);
  assert.equal(outlooks[2]?.left, null);
});

test("present amounts are those of the last minutes, and the trend is that of the period", () => {
  const recent = history();
  const newest = recent.classes.find((each) => each.resource_class === "VCPU");
  assert.ok(newest);
  newest.used = times.map(() => 390);
  const [vcpu] = outlooksOf(history(), recent);
  assert.equal(vcpu?.used, 390);
  assert.ok(vcpu.left && Math.abs(vcpu.left.days - 0.2) < 1e-6);
});

test("more hosts add days, and a lost zone may leave too little", () => {
  const [vcpu] = outlooksOf(history());
  assert.ok(vcpu);
  const more = outlookWith(vcpu, 100);
  assert.equal(more.share, 0.7);
  assert.ok(more.left && Math.abs(more.left.days - 3) < 1e-6);
  const less = outlookWith(vcpu, -100);
  assert.equal(less.missing, 50);
  assert.equal(less.left?.days, 0);
  assert.equal(outlookWith(vcpu, -400).share, Infinity);
});

test("the projection ends where the class is full", () => {
  const known = history();
  const [vcpu] = outlooksOf(known);
  assert.ok(vcpu);
  const { times: all, shares, middle, low, high } = projectionOf(known, vcpu);
  assert.equal(all.length, known.times.length + 33);
  for (const each of [shares, middle, low, high]) assert.equal(each.length, all.length);
  assert.ok(middle.every((each) => each === null || (each >= 0 && each <= 1)));
  assert.equal(low[0], null);
});
