/** The ranking of the best hosts, and what other multipliers would do to it. */
import { useState } from "preact/hooks";
import { h } from "preact";
import { hostLink } from "../parts/links.js";
import { Card, Table } from "../parts/elements.js";
import { Input } from "../parts/fields.js";
import { rerank } from "./sentences.js";

const SHOWN_MAX = 6;

/** @param {{scores: any[], chosen: string, preferences: any[], tips: any[]}} props */
export function Ranking({ scores, chosen, preferences, tips }) {
  const [multipliers, setMultipliers] = useState(/** @type {Record<string, number>} */ ({}));
  const weighers = weighersOf(scores);
  const isChanged = Object.keys(multipliers).length > 0;
  const rows = rerank(scores, multipliers);
  const best = rows[0]?.total ?? 0;
  const scale = Math.max(
    ...rows.map((row) => row.shares.reduce((sum, each) => sum + Math.max(0, each.value), 0)),
    1e-9,
  );
  const winner = rows[0]?.host;
  return h(
    Card,
    {
      title: `Ranking of the best ${rows.length}`,
      second: isChanged
        ? winner === chosen
          ? `With these multipliers, ${chosen} still wins.`
          : `With these multipliers, ${winner} would win.`
        : "The parts of a bar are the contributions of the weighers.",
      flush: true,
    },
    h(
      "div",
      { class: "legend" },
      weighers.map((each, at) =>
        h(
          "span",
          { key: each.weigher },
          h("span", { class: `swatch weigher-${Math.min(at + 1, SHOWN_MAX)}` }),
          each.weigher,
        ),
      ),
    ),
    h(Table, {
      label: "Ranking",
      rows: rows.map((row, place) => ({ ...row, place })),
      keyOf: (row) => row.host,
      rowClass: (row) => (row.host === chosen ? "chosen" : ""),
      columns: [
        {
          title: "Host",
          cell: (row) => [
            hostLink(row.host),
            row.host === chosen ? [" ", h("span", { class: "badge granted" }, "chosen")] : null,
            isChanged && row.place === 0 && row.host !== chosen
              ? [" ", h("span", { class: "badge accent" }, "would win")]
              : null,
          ],
        },
        { title: "Total", isNumber: true, class: "strong", cell: (row) => row.total.toFixed(4) },
        {
          title: "Behind",
          isNumber: true,
          class: "zero",
          cell: (row) => (row.place ? (best - row.total).toFixed(4) : ""),
        },
        { title: "Contributions", class: "ranking-bar", cell: (row) => h(Bar, { row, weighers, scale }) },
      ],
    }),
    preferences.map((each) =>
      h(
        "p",
        { key: each.weigher, class: "second table-end" },
        `${each.weigher}: ${each.host} ${each.text} than ${each.other}.`,
      ),
    ),
    h(Sliders, { weighers, multipliers, setMultipliers, tips }),
  );
}

/** @param {any[]} scores @returns {{weigher: string, multiplier: number}[]} */
function weighersOf(scores) {
  const first = scores[0]?.weights ?? [];
  return first.filter(
    (/** @type {any} */ each) =>
      each.multiplier !== 0 ||
      scores.some((score) =>
        score.weights.some((/** @type {any} */ weight) => weight.weigher === each.weigher && weight.contribution !== 0),
      ),
  );
}

/** @param {{row: any, weighers: any[], scale: number}} props */
function Bar({ row, weighers, scale }) {
  const text = row.shares.map((/** @type {any} */ each) => `${each.weigher} ${each.value.toFixed(4)}`).join(", ");
  return h(
    "div",
    { class: "ranking-meter", role: "img", "aria-label": text, title: text },
    weighers.map((each, at) => {
      const value = row.shares.find((/** @type {any} */ share) => share.weigher === each.weigher)?.value ?? 0;
      return h("span", {
        key: each.weigher,
        class: `weigher-${Math.min(at + 1, SHOWN_MAX)}`,
        style: { width: `${((100 * Math.max(0, value)) / scale).toFixed(2)}%` },
      });
    }),
  );
}

/** @param {{weighers: any[], multipliers: Record<string, number>, setMultipliers: (values: Record<string, number>) => void, tips: any[]}} props */
function Sliders({ weighers, multipliers, setMultipliers, tips }) {
  return h(
    "details",
    { class: "sliders" },
    h("summary", {}, "Try other multipliers"),
    weighers.map((each) => {
      const value = multipliers[each.weigher] ?? each.multiplier;
      const tip = tips.find((other) => other.weigher === each.weigher);
      const bound = Math.max(5, 2 * Math.abs(each.multiplier));
      return h(
        "label",
        { key: each.weigher, class: "slider" },
        h("span", {}, each.weigher),
        h(Input, {
          type: "range",
          min: -bound,
          max: bound,
          step: 0.01,
          value,
          "aria-label": `Multiplier of ${each.weigher}`,
          onText: (text) => setMultipliers({ ...multipliers, [each.weigher]: Number(text) }),
        }),
        h("output", { class: "number" }, value.toFixed(2)),
        h("span", { class: "second" }, tip ? `${tip.host} draws level at ${Number(tip.tipping).toPrecision(4)}` : ""),
      );
    }),
    h("button", { class: "button small", type: "button", onClick: () => setMultipliers({}) }, "Reset"),
  );
}
