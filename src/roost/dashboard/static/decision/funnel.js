/** The rules as a funnel: which hosts are left after each, and which each alone would refuse. */
import { h } from "preact";
import { count, counted } from "../page/format.js";
import { Card, Count } from "../parts/elements.js";

const NOTABLE = 0.3; // share of hosts from which a count that no other rule explains is strong

/** @param {{rules: any[], hosts: number, left: number}} props */
export function Funnel({ rules, hosts, left }) {
  let before = hosts;
  const rows = rules.map((rule) => {
    const row = { ...rule, before, after: before - rule.in_turn };
    before = row.after;
    return row;
  });
  return h(
    Card,
    {
      title: "Which rule refused which hosts",
      second: "Rules in their order. A host counts for the first rule that refuses it.",
      flush: true,
    },
    h(
      "div",
      { class: "table-box", tabIndex: 0, role: "region", "aria-label": "Rules and the hosts that they refuse" },
      h(
        "table",
        { class: "funnel" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", { scope: "col" }, "Hosts that …"),
            h("th", { scope: "col" }, `Left of ${count(hosts)}`),
            h("th", { scope: "col", class: "number" }, "Refused in turn"),
            h("th", { scope: "col", class: "number" }, "Alone"),
            h("th", { scope: "col", class: "number" }, "By no other rule"),
          ),
        ),
        h(
          "tbody",
          {},
          rows.map((row, at) => h(Row, { key: at, row, hosts })),
        ),
        h(
          "tfoot",
          {},
          h(
            "tr",
            {},
            h(
              "td",
              { class: "strong" },
              left ? `${counted(left, "host")} ${left === 1 ? "is" : "are"} left` : "No host is left",
            ),
            h("td", {}, h(Bar, { before: left, after: left, hosts })),
            h("td", { class: "number strong" }, count(left)),
            h("td", {}),
            h("td", {}),
          ),
        ),
      ),
    ),
  );
}

/** @param {{row: any, hosts: number}} props */
function Row({ row, hosts }) {
  const isNotable = row.only > NOTABLE * hosts;
  return h(
    "tr",
    {},
    h("td", {}, h("div", {}, row.reason), h("div", { class: "second" }, row.rule)),
    h("td", { class: "funnel-bar" }, h(Bar, { before: row.before, after: row.after, hosts })),
    h("td", { class: "number" }, row.in_turn ? `−${count(row.in_turn)}` : h(Count, { value: 0 })),
    h("td", { class: "number" }, h(Count, { value: row.alone })),
    h(
      "td",
      { class: "number" },
      isNotable ? h("strong", { class: "notable" }, count(row.only)) : h(Count, { value: row.only }),
    ),
  );
}

/** Solid: left after the rule; hatched: refused by it; empty: refused before. @param {{before: number, after: number, hosts: number}} props */
function Bar({ before, after, hosts }) {
  const part = (/** @type {number} */ value) => `${((100 * value) / Math.max(1, hosts)).toFixed(2)}%`;
  return h(
    "div",
    { class: "funnel-meter", role: "img", "aria-label": `${count(after)} left, ${count(before - after)} refused here` },
    h("span", { class: "left", style: { width: part(after) } }),
    h("span", { class: "refused", style: { width: part(before - after) } }),
  );
}
