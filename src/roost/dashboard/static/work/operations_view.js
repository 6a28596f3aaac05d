/** Operations: those in progress, and those that ended last. */
import { h } from "preact";
import { call } from "../page/api.js";
import { duration } from "../page/format.js";
import { useLoad } from "../page/load.js";
import { Card, Loaded, Table, When } from "../parts/elements.js";
import { chosenOf, ChoiceFilter, SelectFilter } from "../parts/filters.js";
import { instanceLink, operationLink } from "../parts/links.js";
import { Pages } from "../parts/pages.js";
import { kindText } from "../parts/event_words.js";
import { OutcomeBadge, WorkHead } from "./frame.js";

const SHOWN = [
  { value: "open", name: "In progress" },
  { value: "recent", name: "Ended" },
  { value: "failed", name: "Failed" },
];
const KINDS = [
  "build",
  "spawn",
  "delete",
  "start",
  "stop",
  "reboot",
  "rebuild",
  "resize",
  "migrate",
  "live_migrate",
  "evacuate",
  "confirm",
  "revert",
  "shelve",
  "offload",
  "unshelve",
  "reset",
  "drain",
  "clean",
  "sync",
];

/** The query of a choice. @param {string} shown open, recent or failed */
function queryOf(shown) {
  if (shown === "open") return { outcome: "open" };
  return shown === "failed" ? { recent: true, outcome: "failed" } : { recent: true };
}

export function OperationsView() {
  const shown = chosenOf("show", "open");
  const kind = chosenOf("kind");
  const cursor = chosenOf("cursor");
  const loaded = useLoad(
    (signal) => call("GET", "/operations", { query: { ...queryOf(shown), kind, cursor, limit: 100 }, signal }),
    [shown, kind, cursor],
    { everyMs: 3000 },
  );
  return h(
    "div",
    {},
    h(WorkHead, { current: "/operations", second: "What the conductors do, step by step" }),
    h(
      "div",
      { class: "bar-of-tools filters" },
      h(ChoiceFilter, { name: "show", label: "Which operations", options: SHOWN, usual: "open" }),
      h(SelectFilter, {
        name: "kind",
        label: "Kind",
        options: [{ value: "", name: "Any kind" }, ...KINDS.map((value) => ({ value, name: kindText(value) }))],
      }),
    ),
    h(Loaded, {
      of: loaded,
      children: (page) =>
        h(
          Card,
          { flush: true },
          h(OperationsTable, {
            operations: page.operations,
            empty: shown === "open" ? "Nothing is in progress." : "No operation matches.",
          }),
          shown === "open" ? h(Pages, { next: page.next, cursor }) : null,
        ),
    }),
  );
}

/** @param {{operations: any[], empty?: string}} props */
export function OperationsTable({ operations, empty = "None." }) {
  return h(Table, {
    label: "Operations",
    rows: operations,
    keyOf: (row) => row.uuid,
    empty,
    columns: [
      { title: "Kind", class: "nowrap", cell: (row) => operationLink(row.uuid, kindText(row.kind)) },
      { title: "Result", cell: (row) => h(OutcomeBadge, { operation: row }) },
      {
        title: "Instance or host",
        class: "nowrap",
        cell: (row) => (row.instance ? instanceLink(row.instance, row.instance_name) : (row.drain?.host ?? "–")),
      },
      { title: "Step", cell: (row) => (row.outcome === "open" ? row.step : "–") },
      { title: "Problem", class: "problem-cell", cell: (row) => row.problem },
      {
        title: "Time",
        isNumber: true,
        cell: (row) =>
          row.outcome === "open"
            ? duration(Date.now() / 1000 - row.created_at_s)
            : h(When, { seconds: row.changed_at_s }),
      },
    ],
  });
}
