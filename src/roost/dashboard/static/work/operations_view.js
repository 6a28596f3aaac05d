/** Operations: those in progress, and those that ended last. */
import { h } from "preact";
import { call } from "../page/api.js";
import { age, duration } from "../page/format.js";
import { useLoad } from "../page/load.js";
import { place, setQuery } from "../page/router.js";
import { Card, Choice, Loaded, Select, Table } from "../parts/elements.js";
import { instanceLink, operationLink } from "../parts/links.js";
import { Pages } from "../parts/pages.js";
import { kindText } from "../parts/story.js";
import { OutcomeBadge, WorkHead } from "./frame.js";

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
  const { query } = place.value;
  const shown = query.get("show") ?? "open";
  const kind = query.get("kind") ?? "";
  const cursor = query.get("cursor") ?? "";
  const loaded = useLoad(
    (signal) => call("GET", "/operations", { query: { ...queryOf(shown), kind, cursor, limit: 100 }, signal }),
    [shown, kind, cursor],
    { everyMs: 3000 },
  );
  return h(
    "div",
    {},
    h(WorkHead, { current: "/operations", second: "Tasks of the conductors, step by step" }),
    h(
      "div",
      { class: "bar-of-tools filters" },
      h(Choice, {
        label: "Which operations",
        value: shown,
        options: [
          { value: "open", name: "In progress" },
          { value: "recent", name: "Ended" },
          { value: "failed", name: "Failed" },
        ],
        onChoose: (value) => setQuery({ show: value === "open" ? null : value, cursor: null }),
      }),
      h(Select, {
        label: "Kind",
        value: kind,
        options: [{ value: "", name: "Any kind" }, ...KINDS.map((value) => ({ value, name: kindText(value) }))],
        onChoose: (value) => setQuery({ kind: value, cursor: null }),
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
          row.outcome === "open" ? duration(Date.now() / 1000 - row.created_at_s) : age(row.changed_at_s),
      },
    ],
  });
}
