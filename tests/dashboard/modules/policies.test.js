import assert from "node:assert/strict";
import { test } from "node:test";
import {
  fileOf,
  firstSets,
  fromLink,
  fullOf,
  multipliersOf,
  nextSet,
  problemOf,
  toLink,
  withValue,
} from "../../../src/roost/dashboard/static/policies/sets.js";
import { fromToml, toToml } from "../../../src/roost/dashboard/static/policies/toml.js";

const SECTIONS = {
  filter_scheduler: {
    cpu_weight_multiplier: -1.5,
    enabled_filters: ["ComputeFilter", 'a "b" # c'],
    host_subset_size: 3,
  },
  scheduler: { image_metadata_prefilter: true, driver: "filter" },
};

test("a settings file is read as it was written", () => {
  assert.deepEqual(fromToml(toToml(SECTIONS)), SECTIONS);
  assert.equal(toToml({ empty: {} }), "");
});

test("comments, lists over several lines and other forms of numbers and texts are read", () => {
  const text = `# head
[filter_scheduler] # all of it
enabled_filters = [
  "ComputeFilter", # first
  'C:\\x', "it's 1_0, 'q'",
]
build_failure_weight_multiplier = 1_000_000.0
cpu_weight_multiplier = +2
`;
  assert.deepEqual(fromToml(text), {
    filter_scheduler: {
      enabled_filters: ["ComputeFilter", "C:\\x", "it's 1_0, 'q'"],
      build_failure_weight_multiplier: 1_000_000,
      cpu_weight_multiplier: 2,
    },
  });
});

for (const [text, problem] of [
  ["cpu = 1", /^Line 1: begin with a section/],
  ["[a]\nb", /^Line 2: write NAME = VALUE/],
  ["[a]\n\nb = many", /^Line 3: many must be a number/],
  ["[a]\nb = 1\nb = 2", /^Line 3: b is set twice/],
])
  test(`a mistake names its line: ${JSON.stringify(text)}`, () => {
    assert.throws(() => fromToml(/** @type {string} */ (text)), { message: /** @type {RegExp} */ (problem) });
  });

test("a value as in force leaves its set, and an empty section too", () => {
  const one = withValue({}, "a", "b", 1);
  assert.deepEqual(one, { a: { b: 1 } });
  assert.deepEqual(withValue(one, "a", "c", 2), { a: { b: 1, c: 2 } });
  assert.deepEqual(withValue(one, "a", "b", undefined), {});
  assert.deepEqual(one, { a: { b: 1 } });
});

test("a link holds two to four sets, and nothing else", () => {
  assert.deepEqual(fromLink(toLink(firstSets())), firstSets());
  for (const text of [null, "", "{", "[]", '[["a",{}]]', JSON.stringify(new Array(5).fill(["a", {}]))])
    assert.equal(fromLink(text), null);
});

test("sets need names of their own", () => {
  const sets = firstSets();
  assert.equal(problemOf([...sets, nextSet(sets)]), "");
  assert.match(problemOf([...sets, ...sets]), /same name/);
  assert.match(problemOf([{ name: " ", sections: {} }]), /needs a name/);
});

test("a file has what is in force for decisions, and the changes of its set", () => {
  const setting = (/** @type {string} */ section, /** @type {string} */ key, /** @type {any} */ value) => ({
    section,
    key,
    value,
    default: 1,
    source: "",
    kind: "number",
    description: "",
  });
  const settings = [
    setting("filter_scheduler", "cpu_weight_multiplier", 2),
    setting("filter_scheduler", "ram_weight_multiplier", 1),
    setting("store", "url", "postgresql://x"),
  ];
  const full = fullOf({ filter_scheduler: { ram_weight_multiplier: -1 } }, settings);
  assert.deepEqual(full, { filter_scheduler: { cpu_weight_multiplier: 2, ram_weight_multiplier: -1 } });
  assert.equal(fileOf("Free share, 2"), "free-share-2.toml");
  const rule = {
    kind: "weigher",
    name: "cpu",
    nova_name: "",
    multiplier: 2,
    settings: ["filter_scheduler.cpu_weight_multiplier"],
  };
  assert.deepEqual(multipliersOf([rule], settings), [{ weigher: "cpu", setting: settings[0] }]);
});
