/** What a comparison found: figures, spread, plots, maps, and the decisions that differ. */
import { useMemo, useState } from "preact/hooks";
import { h } from "preact";
import { capital, className, count, counted, dateTime, percent } from "../page/format.js";
import { Card, Select, Table } from "../parts/elements.js";
import { decisionLink } from "../parts/links.js";
import { Plot } from "../parts/plot.js";
import { colourOf, SetName } from "./set_editor.js";
import { ShareMaps } from "./share_maps.js";

const BINS = 10;
const HOSTS_SHOWN = 2;
const ROWS_SHOWN = 20;

/** @param {{comparison: any}} props */
export function Results({ comparison }) {
  const classes = comparison.sets[0]?.classes.map((/** @type {any} */ each) => each.resource_class) ?? [];
  const [chosen, setChosen] = useState("");
  const resourceClass = classes.includes(chosen) ? chosen : classes.includes("VCPU") ? "VCPU" : (classes[0] ?? "");
  if (!comparison.requests)
    return h(
      "div",
      { class: "stack" },
      h(Notes, { notes: comparison.notes }),
      h("div", { class: "card empty" }, "No decision is recorded yet."),
    );
  return h(
    "div",
    { class: "stack" },
    h(Notes, { notes: comparison.notes }),
    h(Figures, { comparison }),
    h(
      Card,
      {
        title: "Used shares of the hosts",
        second:
          "After the last decision: the hosts from the emptiest to the fullest, 8 of 10 within the box, and the median",
        acts: h(Select, {
          label: "Resource class",
          value: resourceClass,
          options: classes.map((/** @type {string} */ each) => ({ value: each, name: className(each) })),
          onChoose: setChosen,
        }),
      },
      h(Spreads, { comparison, resourceClass }),
      comparison.hosts.length ? h(ShareMaps, { comparison, resourceClass }) : null,
      comparison.hosts.length ? h(Histograms, { comparison, resourceClass }) : null,
    ),
    h(
      "div",
      { class: "halves" },
      h(OverTime, { comparison, title: "Granted requests", of: "granted_over_time" }),
      h(OverTime, { comparison, title: "Hosts that got instances", of: "hosts_over_time" }),
    ),
    h(Different, { comparison }),
  );
}

/** @param {{notes: string[]}} props */
function Notes({ notes }) {
  return notes.length
    ? h(
        "div",
        { class: "notice" },
        notes.map((note) => h("p", { key: note }, `${capital(note)}.`)),
      )
    : null;
}

/** @param {{comparison: any}} props */
function Figures({ comparison }) {
  const { sets } = comparison;
  const [first] = sets;
  const classOf = (/** @type {any} */ set, /** @type {string} */ name) =>
    set.classes.find((/** @type {any} */ each) => each.resource_class === name);
  const rows = [
    { name: "Granted requests", of: (/** @type {any} */ set) => set.granted },
    { name: "Refused requests", of: (/** @type {any} */ set) => set.refused },
    ...(sets.some((/** @type {any} */ set) => set.failed)
      ? [{ name: "Failed requests", of: (/** @type {any} */ set) => set.failed }]
      : []),
    { name: "Placed instances", of: (/** @type {any} */ set) => set.instances },
    { name: "Hosts in use at the end", of: (/** @type {any} */ set) => set.hosts_used },
    { name: `Other hosts or outcome than ${first.name}`, of: (/** @type {any} */ set) => set.differs, isPlain: true },
    { name: "Other than recorded", of: (/** @type {any} */ set) => set.differs_from_recorded, isPlain: true },
    ...first.classes.flatMap((/** @type {any} */ each) => [
      {
        name: `${className(each.resource_class)}: used`,
        of: (/** @type {any} */ set) => {
          const found = classOf(set, each.resource_class);
          return found.used / found.capacity;
        },
        isShare: true,
      },
      {
        name: `${className(each.resource_class)}: deviation between hosts`,
        of: (/** @type {any} */ set) => classOf(set, each.resource_class).deviation,
        isShare: true,
      },
    ]),
  ];
  return h(
    Card,
    {
      title: `${counted(comparison.requests, "recorded request")}, decided again`,
      second: `${dateTime(comparison.since_s)} to ${dateTime(comparison.until_s)} · ${counted(
        comparison.departures,
        "departure",
      )} between them`,
      flush: true,
    },
    h(Table, {
      label: "Figures of each set",
      rows,
      keyOf: (row) => row.name,
      columns: [
        { title: "Figure", cell: (row) => row.name },
        ...sets.map((/** @type {any} */ set, /** @type {number} */ at) => ({
          title: h(SetName, { at, name: set.name }),
          isNumber: true,
          cell: (/** @type {any} */ row) => h(Figure, { row, value: row.of(set), first: at ? row.of(first) : null }),
        })),
      ],
    }),
  );
}

/** @param {{row: any, value: number, first: number | null}} props */
function Figure({ row, value, first }) {
  const difference = first === null || row.isPlain ? 0 : value - first;
  const text = (/** @type {number} */ number) => (row.isShare ? percent(number) : count(number));
  const sign = difference > 0 ? "+" : "−";
  const isSmall = Math.abs(difference) < (row.isShare ? 0.0005 : 0.5);
  return h(
    "span",
    {},
    isSmall ? null : h("span", { class: "zero" }, `${sign}${text(Math.abs(difference))} `),
    h("span", { class: isSmall ? "" : "strong" }, text(value)),
  );
}

/** @param {{comparison: any, resourceClass: string}} props */
function Spreads({ comparison, resourceClass }) {
  return h(
    "div",
    { class: "spreads" },
    comparison.sets.map((/** @type {any} */ set, /** @type {number} */ at) => {
      const spread = set.classes.find((/** @type {any} */ each) => each.resource_class === resourceClass);
      if (!spread) return null;
      const words = `${percent(spread.least)} to ${percent(spread.most)}, 8 of 10 from ${percent(spread.tenth)} to ${percent(
        spread.ninetieth,
      )}, median ${percent(spread.median)}`;
      const place = (/** @type {number} */ share) => percent(Math.min(1, share), 2);
      return h(
        "div",
        { key: set.name, class: "spread" },
        h("span", { class: "spread-name" }, h(SetName, { at, name: set.name })),
        h(
          "div",
          { class: "spread-bar", role: "img", "aria-label": `${set.name}: ${words}` },
          h("span", {
            class: "spread-line",
            style: { left: place(spread.least), width: place(spread.most - spread.least) },
          }),
          h("span", {
            class: `spread-box set-${at + 1}`,
            style: { left: place(spread.tenth), width: place(spread.ninetieth - spread.tenth) },
          }),
          h("span", { class: "spread-median", style: { left: place(spread.median) } }),
        ),
        h("span", { class: "second number" }, `median ${percent(spread.median)}, mean ${percent(spread.mean)}`),
      );
    }),
  );
}

/** Hosts by used share, one group of bars for each tenth. @param {{comparison: any, resourceClass: string}} props */
function Histograms({ comparison, resourceClass }) {
  const bins = useMemo(
    () =>
      comparison.sets.map((/** @type {any} */ set) => {
        const counts = new Array(BINS).fill(0);
        const spread = set.classes.find((/** @type {any} */ each) => each.resource_class === resourceClass);
        for (const share of spread?.shares ?? [])
          if (share !== null) counts[Math.min(BINS - 1, Math.floor((share * BINS) / 1000))] += 1;
        return counts;
      }),
    [comparison, resourceClass],
  );
  const most = Math.max(1, ...bins.flat());
  return h(
    "div",
    { class: "set-histogram" },
    h("h3", {}, "Hosts by used share"),
    h(
      "div",
      {
        role: "img",
        "aria-label": `Hosts by used share, in tenths from empty to full. ${comparison.sets
          .map((/** @type {any} */ set, /** @type {number} */ at) => `${set.name}: ${bins[at].join(", ")}`)
          .join(". ")}`,
      },
      Array.from({ length: BINS }, (_, bin) =>
        h(
          "div",
          { key: bin },
          h(
            "div",
            { class: "set-bars" },
            bins.map((/** @type {number[]} */ counts, /** @type {number} */ at) =>
              h("span", {
                key: at,
                class: `set-${at + 1}`,
                title: `${comparison.sets[at].name}: ${counted(counts[bin] ?? 0, "host")}`,
                style: { height: percent((counts[bin] ?? 0) / most, 1) },
              }),
            ),
          ),
          h("span", {}, `${bin * 10}%`),
        ),
      ),
    ),
  );
}

/** @param {{comparison: any, title: string, of: string}} props */
function OverTime({ comparison, title, of }) {
  const lines = useMemo(
    () =>
      comparison.sets.map((/** @type {any} */ set, /** @type {number} */ at) => ({
        label: set.name,
        colour: colourOf(at),
        values: [0, ...set[of]],
        isDashed: at % 2 === 1,
      })),
    [comparison, of],
  );
  const moments = useMemo(() => [0, ...comparison.moments], [comparison]);
  return h(
    Card,
    { title, second: "By the number of decided requests" },
    h(Plot, { label: title, times: moments, lines, format: (value) => count(Math.round(value)), isCount: true }),
  );
}

/** @param {{comparison: any}} props */
function Different({ comparison }) {
  const { sets, decisions, different } = comparison;
  const [isLong, setLong] = useState(false);
  return h(
    Card,
    {
      title: "Decisions that differ between the sets",
      second:
        different > decisions.length
          ? `The first ${count(decisions.length)} of ${count(different)}`
          : `${counted(different, "decision")} of ${count(comparison.requests)}`,
      flush: true,
    },
    h(Table, {
      label: "Decisions that differ",
      rows: isLong ? decisions : decisions.slice(0, ROWS_SHOWN),
      keyOf: (row) => row.uuid,
      empty: "All sets choose the same hosts.",
      columns: [
        { title: "Why", class: "nowrap", cell: (row) => decisionLink(row.uuid) },
        { title: "Flavor", cell: (row) => row.flavor || "–" },
        { title: "Instances", isNumber: true, cell: (row) => row.count },
        { title: "Recorded", cell: (row) => h(Place, { result: row.recorded }) },
        ...sets.map((/** @type {any} */ set, /** @type {number} */ at) => ({
          title: h(SetName, { at, name: set.name }),
          cell: (/** @type {any} */ row) =>
            h(Place, { result: row.results[at], ...(at ? { first: row.results[0] } : {}) }),
        })),
      ],
    }),
    decisions.length > ROWS_SHOWN && !isLong
      ? h(
          "div",
          { class: "table-end" },
          h(
            "button",
            { class: "button", type: "button", onClick: () => setLong(true) },
            `Show ${count(decisions.length - ROWS_SHOWN)} more`,
          ),
        )
      : null,
  );
}

/** @param {{result: any, first?: any}} props */
function Place({ result, first }) {
  const text = placeText(result);
  if (first === undefined) return h("span", {}, text);
  const isSame = text === placeText(first);
  return h(
    "span",
    { class: isSame ? "zero" : "strong" },
    isSame ? "= " : "≠ ",
    text,
    result.outcome === "refused" && !isSame ? h("div", { class: "second" }, result.reason) : null,
  );
}

/** @param {any} result */
function placeText({ outcome, hosts, reason }) {
  if (outcome === "refused") return "✕ refused";
  if (outcome === "failed") return `failed: ${reason}`;
  const names = [...new Set(hosts)];
  return names.length > HOSTS_SHOWN
    ? `${names.slice(0, HOSTS_SHOWN).join(", ")} and ${names.length - HOSTS_SHOWN} more`
    : names.join(", ");
}
