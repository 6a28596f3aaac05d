/** A decision with its explanation: the same for a stored decision and for a dry run. */
import { h } from "preact";
import { amount, amountsText, className, count, counted, percent } from "../page/format.js";
import { Card, Facts, Meter, Table } from "../parts/elements.js";
import { hostLink } from "../parts/links.js";
import { Funnel } from "./funnel.js";
import { Ranking } from "./ranking.js";
import { headline, requestFacts } from "./sentences.js";

const PICKS_SHOWN = 50;

/** @param {{why: any, onTry?: (body: any) => void, side?: any}} props */
export function Explained({ why, onTry, side }) {
  const { decision, explanation } = why;
  return h(
    "div",
    { class: "stack" },
    h(Verdict, { why }),
    h(
      "div",
      { class: "columns" },
      h(
        "div",
        { class: "stack" },
        explanation
          ? h(Funnel, { rules: explanation.rules, hosts: explanation.hosts, left: explanation.left })
          : h(Stages, { decision, note: why.note }),
        decision.scores.length > 1
          ? h(Ranking, {
              scores: decision.scores,
              chosen: decision.picks[0]?.node ?? "",
              preferences: explanation?.preferences ?? [],
              tips: explanation?.tips ?? [],
            })
          : null,
        decision.outcome === "refused" && explanation
          ? h(
              "div",
              { class: "halves" },
              h(Nearest, { nearest: explanation.nearest }),
              h(Changes, { why, ...(onTry ? { onTry } : {}) }),
            )
          : null,
        decision.picks.length ? h(Picks, { decision }) : null,
      ),
      h(
        "div",
        { class: "stack" },
        h(Card, { title: "The request" }, h(Facts, { rows: requestFacts(why.request) })),
        h(How, { decision, explanation }),
        side,
      ),
    ),
  );
}

/** @param {{why: any}} props */
function Verdict({ why }) {
  const { decision } = why;
  const isGranted = decision.outcome === "granted";
  const { strong, rest } = headline(why);
  const alternates = Object.values(decision.alternates).flat();
  return h(
    "section",
    { class: "card verdict", "aria-label": "Result" },
    h("div", { class: `verdict-sign ${decision.outcome}`, "aria-hidden": "true" }, isGranted ? "✓" : "✕"),
    h(
      "div",
      {},
      h("p", { class: "verdict-text" }, h("strong", {}, strong), " ", rest),
      h(
        "p",
        { class: "second" },
        isGranted
          ? alternates.length
            ? `Next if the build fails: ${alternates
                .slice(0, 5)
                .map((/** @type {any} */ each) => each.host)
                .join(", ")}`
            : "No alternates."
          : decision.reason === rest
            ? null
            : decision.reason,
      ),
      decision.warnings.map((/** @type {string} */ text) => h("p", { key: text, class: "second" }, `Note: ${text}`)),
    ),
  );
}

/** Stages of a decision without its stored state. @param {{decision: any, note: string}} props */
function Stages({ decision, note }) {
  const rules = decision.stages.map((/** @type {any} */ stage) => ({
    rule: stage.rule,
    reason: stage.reason,
    in_turn: stage.before - stage.after,
    alone: 0,
    only: 0,
  }));
  const hosts = decision.stages[0]?.before ?? 0;
  const left = decision.stages.at(-1)?.after ?? 0;
  return h(
    "div",
    { class: "stack" },
    note ? h("div", { class: "notice" }, note) : null,
    h(Funnel, { rules, hosts, left }),
  );
}

/** @param {{nearest: any[]}} props */
function Nearest({ nearest }) {
  return h(
    Card,
    { title: "Nearest hosts", second: "The fewest rules refuse them, and they lack the least.", flush: true },
    h(Table, {
      label: "Nearest hosts",
      rows: nearest,
      keyOf: (row) => row.host,
      empty: "No host is near.",
      columns: [
        { title: "Host", cell: (row) => hostLink(row.host) },
        {
          title: "Shortfall",
          cell: (row) =>
            row.shortfalls.map((/** @type {any} */ short, /** @type {number} */ at) =>
              h(Shortfall, { key: at, short }),
            ),
        },
      ],
    }),
  );
}

/** @param {{short: any}} props */
function Shortfall({ short }) {
  if (!short.resource_class || !short.wanted) return h("div", {}, short.reason);
  const share = Math.max(0, Math.min(1, short.has / short.wanted));
  return h(
    "div",
    {},
    h(
      "div",
      { class: "figure-row" },
      h(
        "span",
        {},
        `${amount(short.resource_class, short.wanted - short.has)} ${className(short.resource_class)} short`,
      ),
      h("span", {}, percent(share, 0)),
    ),
    h(Meter, { share, label: `has ${count(short.has)} of ${count(short.wanted)}` }),
    h(
      "div",
      { class: "second" },
      `has ${amount(short.resource_class, short.has)} of ${amount(short.resource_class, short.wanted)}`,
    ),
  );
}

/** @param {{why: any, onTry?: (body: any) => void}} props */
function Changes({ why, onTry }) {
  const { changes, never } = why.explanation;
  return h(
    "div",
    { class: "stack" },
    h(
      Card,
      { title: changes.length ? "Any one of these changes would fit" : "No single change would fit" },
      changes.map((/** @type {any} */ change, /** @type {number} */ at) =>
        h(
          "div",
          { key: at, class: "change" },
          h(
            "div",
            {},
            h("strong", {}, change.text),
            h("div", { class: "second" }, `opens ${counted(change.hosts, "host")}`),
          ),
          onTry
            ? h(
                "button",
                { class: "button small", type: "button", onClick: () => onTry(why.change_bodies[at]) },
                "Try it",
              )
            : null,
        ),
      ),
    ),
    never
      ? h(
          Card,
          { title: "Could it ever fit?" },
          h(
            "p",
            {},
            never.could_fit
              ? "✓ Yes: it fits on this fleet without other instances."
              : "✕ No: it would not fit on an empty fleet.",
          ),
        )
      : null,
  );
}

/** @param {{decision: any}} props */
function Picks({ decision }) {
  return h(
    Card,
    {
      title: decision.picks.length === 1 ? "The host" : `The hosts of ${counted(decision.picks.length, "instance")}`,
      flush: true,
    },
    h(Table, {
      label: "Chosen hosts",
      rows: decision.picks
        .slice(0, PICKS_SHOWN)
        .map((/** @type {any} */ pick, /** @type {number} */ at) => ({ ...pick, at })),
      keyOf: (row) => row.at,
      columns: [
        { title: "Host", cell: (row) => hostLink(row.node) },
        { title: "Instance", class: "mono", cell: (row) => row.instance_uuid ?? "" },
        {
          title: "Allocations",
          cell: (row) =>
            Object.values(row.allocations)
              .map((each) => amountsText(each))
              .join("; "),
        },
      ],
    }),
    decision.picks.length > PICKS_SHOWN
      ? h("p", { class: "second table-end" }, `And ${count(decision.picks.length - PICKS_SHOWN)} more.`)
      : null,
  );
}

/** @param {{decision: any, explanation: any}} props */
function How({ decision, explanation }) {
  /** @type {[string, any][]} */
  const rows = [
    ["Hosts judged", explanation ? count(explanation.hosts) : count(decision.stages[0]?.before ?? 0)],
    ["State", `position ${count(decision.position)}`],
  ];
  if (decision.user_id) rows.push(["Requested by", decision.user_id]);
  if (decision.conflicts.length) rows.push(["Lost to others", decision.conflicts.join(", ")]);
  return h(Card, { title: "How it was decided" }, h(Facts, { rows }));
}
