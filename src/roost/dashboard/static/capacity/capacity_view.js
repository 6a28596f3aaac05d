/** What is left: use over time, the first shortage, how many more instances fit, and what would change that. */
import { useMemo } from "preact/hooks";
import { h } from "preact";
import { call, may } from "../page/api.js";
import { className, count, percent, shortAmount } from "../page/format.js";
import { useLoad } from "../page/load.js";
import { place, setQuery } from "../page/router.js";
import { Card, Head, Loaded, Meter, NoRight, Problem, Select, Table } from "../parts/elements.js";
import { chosenOf, ChoiceFilter, SelectFilter } from "../parts/filters.js";
import { Plot } from "../parts/plot.js";
import { wishesOf } from "./counts.js";
import { FlavorTable } from "./flavor_table.js";
import { outlooksOf, projectionOf, sharesOf } from "./outlook.js";
import { loadRecent } from "./recent.js";
import { leftText } from "./trend.js";
import { WhatIf } from "./what_if.js";

/** @typedef {import("./outlook.js").Outlook} Outlook */

const PERIODS = [
  { value: "hour", name: "Hour", seconds: 3600 },
  { value: "day", name: "Day", seconds: 86_400 },
  { value: "week", name: "Week", seconds: 604_800 },
  { value: "month", name: "30 days", seconds: 2_592_000 },
];
const USUAL = "day";
const POINTS = 240;
// The names of sums over providers outside of hosts, and over zones beyond a limit.
const isReal = (/** @type {string} */ zone) => zone !== "none" && zone !== "other";
const COLOURS = ["--weigher-1", "--weigher-3", "--weigher-4", "--weigher-2", "--weigher-5", "--weigher-6"];

export function CapacityView() {
  const canSee = may("history:show");
  const chosen = chosenOf("period", USUAL);
  const period = /** @type {any} */ (PERIODS.find((each) => each.value === chosen) ?? PERIODS[1]);
  const zone = chosenOf("zone");
  const history = useLoad(
    (signal) => (canSee ? loadHistory(period.seconds, zone, signal) : Promise.resolve(null)),
    [period.value, zone, canSee],
    { everyMs: 60_000 },
  );
  const flavors = useLoad(
    (signal) =>
      may("capacity:show") && may("flavors:list")
        ? call("GET", "/flavors", { query: { requested: true, shapes: true }, signal })
        : Promise.resolve(null),
    [],
  );
  const wishes = useMemo(() => (flavors.data ? wishesOf(flavors.data) : []), [flavors.data]);
  const outlooks = useMemo(() => (history.data ? outlooksOf(history.data, history.data.recent) : []), [history.data]);
  if (!canSee && !may("capacity:show"))
    return h("div", {}, h(Head, { title: "Capacity" }), h(NoRight, { to: "see the capacity of the fleet" }));
  return h(
    "div",
    {},
    h(Head, {
      title: "Capacity",
      second: summaryOf(outlooks),
      acts: canSee ? h(Scope, { zone, zones: history.data?.zones ?? [] }) : null,
    }),
    h(
      "div",
      { class: "stack" },
      canSee ? h(Loaded, { of: history, children: (data) => h(Use, { history: data, outlooks }) }) : null,
      h(Problem, { error: flavors.error, again: flavors.again }),
      flavors.data
        ? [
            h(FlavorTable, { key: "f", wishes }),
            h(WhatIf, { key: "w", wishes, outlooks, zones: (history.data?.zones ?? []).filter(isReal) }),
          ]
        : null,
    ),
  );
}

/** The history of a period, and that of the last minutes. @param {number} seconds @param {string} zone @param {AbortSignal} signal */
async function loadHistory(seconds, zone, signal) {
  const query = { since: Date.now() / 1000 - seconds, points: POINTS, zone };
  const [history, recent] = await Promise.all([call("GET", "/history", { query, signal }), loadRecent(zone, signal)]);
  return { ...history, recent };
}

/** What runs out first, in one sentence. @param {Outlook[]} outlooks */
function summaryOf(outlooks) {
  const first = outlooks[0];
  if (!first) return "What is left, and for how long";
  if (!first.left || first.left.days === Infinity) return "At the present trend, nothing runs out";
  const { main, more } = leftText(first.left);
  if (first.left.days === 0) return `${className(first.name)} is used up`;
  return `${className(first.name)} runs out first: in ${main}${more ? ` (${more})` : ""}`;
}

/** @param {{zone: string, zones: string[]}} props */
function Scope({ zone, zones }) {
  const known = zone && !zones.includes(zone) ? [...zones, zone] : zones;
  return [
    h(SelectFilter, {
      key: "z",
      name: "zone",
      label: "Zone",
      options: [{ value: "", name: "All zones" }, ...known.map((each) => ({ value: each, name: each }))],
    }),
    h(ChoiceFilter, { key: "p", name: "period", label: "Period", usual: USUAL, options: PERIODS }),
  ];
}

/** @param {{history: any, outlooks: Outlook[]}} props */
function Use({ history, outlooks }) {
  const wanted = place.value.query.get("class") ?? "";
  const lines = useMemo(
    () =>
      history.classes.map((/** @type {any} */ each, /** @type {number} */ at) => ({
        label: className(each.resource_class),
        colour: COLOURS[at % COLOURS.length],
        values: sharesOf(each),
        isDashed: at >= COLOURS.length,
      })),
    [history],
  );
  const chosen = outlooks.find((each) => each.name === wanted) ?? outlooks[0];
  if (!chosen)
    return h(
      "div",
      { class: "notice" },
      "The history is empty. A server with hosts writes the first entry within two minutes, unless surveys are disabled.",
    );
  return h(
    "div",
    { class: "stack" },
    h(OutlookTable, { outlooks }),
    h(
      "div",
      { class: "halves" },
      h(
        Card,
        { title: "Used share by resource" },
        h(Plot, { label: "Used share by resource", times: history.times, lines, format: asPercent, max: 1 }),
      ),
      h(Projection, { history, outlook: chosen, outlooks }),
    ),
    h(Decisions, { history }),
  );
}

const asPercent = (/** @type {number} */ value) => percent(value, 0);

/** @param {{outlooks: Outlook[]}} props */
function OutlookTable({ outlooks }) {
  return h(
    Card,
    { title: "What runs out first", second: "By the trend of the chosen period", flush: true },
    h(Table, {
      label: "What runs out first",
      rows: outlooks,
      keyOf: (row) => row.name,
      columns: [
        { title: "Resource", cell: (row) => h("span", { class: "strong" }, className(row.name)) },
        {
          title: "Time left",
          isNumber: true,
          class: "strong",
          cell: (row) => (row.left ? leftText(row.left).main : "too little history"),
        },
        {
          title: "Uncertainty",
          isNumber: true,
          cell: (row) => h("span", { class: "second" }, row.left ? leftText(row.left).more : ""),
        },
        {
          title: "Used",
          class: "use-bar",
          cell: (row) =>
            h(Meter, {
              share: row.used / (row.capacity || 1),
              stranded: row.stranded / (row.capacity || 1),
              label: `${percent(row.used / (row.capacity || 1))} used, ${percent(row.stranded / (row.capacity || 1))} stranded`,
            }),
        },
        { title: "Share", isNumber: true, cell: (row) => percent(row.used / (row.capacity || 1)) },
        { title: "Free", isNumber: true, cell: (row) => shortAmount(row.name, row.free) },
        {
          title: "Free but stranded",
          isNumber: true,
          cell: (row) => (row.free ? percent(row.stranded / row.free) : "–"),
        },
        { title: "Change a day", isNumber: true, cell: (row) => (row.trend ? changeText(row) : "–") },
      ],
    }),
  );
}

/** @param {Outlook} outlook */
function changeText({ name, trend }) {
  const perDay = trend?.perDay ?? 0;
  const size = Math.abs(perDay);
  if (size < 0.05) return "0";
  const text = size < 10 ? size.toFixed(1) : shortAmount(name, Math.round(size));
  return perDay > 0 ? `+${text}` : `−${text}`;
}

/** @param {{history: any, outlook: Outlook, outlooks: Outlook[]}} props */
function Projection({ history, outlook, outlooks }) {
  const shown = useMemo(() => projectionOf(history, outlook), [history, outlook]);
  const lines = useMemo(
    () => [
      { label: "used", colour: "--used", values: shown.shares },
      ...(shown.middle.length
        ? [
            { label: "trend", colour: "--ink", values: shown.middle, isDashed: true },
            { label: "fastest", colour: "--refused-fill", values: shown.high, isDashed: true },
            { label: "slowest", colour: "--granted", values: shown.low, isDashed: true },
          ]
        : []),
    ],
    [shown],
  );
  const left = outlook.left ? leftText(outlook.left) : null;
  return h(
    Card,
    {
      title: `Trend of ${className(outlook.name)}`,
      second: left
        ? `${left.main} left${left.more ? `: ${left.more}, with 90% confidence` : ""}`
        : "Too little history for a trend",
      acts: h(Select, {
        label: "Resource of the trend",
        value: outlook.name,
        options: outlooks.map((each) => ({ value: each.name, name: className(each.name) })),
        onChoose: (value) => setQuery({ class: value }),
      }),
    },
    h(Plot, { label: `Trend of ${className(outlook.name)}`, times: shown.times, lines, format: asPercent, max: 1 }),
  );
}

const REASONS = /** @type {Record<string, string>} */ ({
  amount: "Hosts lack an amount",
  trait: "Hosts lack a trait, or have a forbidden one",
  aggregate: "Hosts are outside of the aggregates",
  class: "Hosts do not offer a resource",
  tree: "Hosts are outside of the requested tree",
  group: "Hosts lack a group of resources",
  no_hosts: "No host was left to choose",
  conflict: "Other requests were faster",
  other: "Other reasons",
});

/** @param {{rule: string, reason: string}} row */
const refusalText = ({ rule, reason }) => (reason === "rule" ? `Filter ${rule}` : (REASONS[reason] ?? reason));

/** @param {{history: any}} props */
function Decisions({ history }) {
  const refused = useMemo(
    () =>
      history.times.map((/** @type {number} */ _, /** @type {number} */ at) =>
        history.refused.reduce((/** @type {number} */ sum, /** @type {any} */ each) => sum + (each.counts[at] ?? 0), 0),
      ),
    [history],
  );
  const lines = useMemo(
    () => [
      { label: "granted", colour: "--used", values: history.granted, isFilled: true },
      { label: "refused", colour: "--refused-fill", values: refused, isDashed: true },
    ],
    [history, refused],
  );
  const sum = (/** @type {number[]} */ numbers) => numbers.reduce((total, each) => total + each, 0);
  return h(
    "div",
    { class: "halves" },
    h(
      Card,
      {
        title: "Decisions",
        second: `${count(sum(history.granted))} granted, ${count(sum(refused))} refused`,
      },
      h(Plot, { label: "Decisions", times: history.times, lines, format: count }),
    ),
    h(
      Card,
      { title: "Refusals by reason", flush: true },
      h(Table, {
        label: "Refusals by reason",
        rows: history.refused,
        keyOf: (row) => `${row.rule}/${row.reason}`,
        empty: "None in this period.",
        columns: [
          { title: "Reason", cell: refusalText },
          { title: "Refusals", isNumber: true, cell: (row) => count(sum(row.counts)) },
        ],
      }),
    ),
  );
}
