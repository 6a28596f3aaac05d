/** Migrations, in the order of their requests. */
import { h } from "preact";
import { call } from "../page/api.js";
import { useLoad } from "../page/load.js";
import { setQuery } from "../page/router.js";
import { Card, Loaded, Table, When } from "../parts/elements.js";
import { chosenOf, SelectFilter } from "../parts/filters.js";
import { hostLink, instanceLink, operationLink } from "../parts/links.js";
import { Pages } from "../parts/pages.js";
import { WorkHead } from "./frame.js";

const STATUSES = [
  ["moving", "in progress"],
  ["finished", "waiting for confirmation"],
  ["left", "leaving the source"],
  ["reverting", "returning"],
  ["confirmed", "done"],
  ["reverted", "reverted"],
  ["failed", "failed"],
];

export function MigrationsView() {
  const status = chosenOf("status", "moving");
  const source = chosenOf("source");
  const target = chosenOf("target");
  const cursor = chosenOf("cursor");
  const wanted = status === "any" ? "" : status;
  const loaded = useLoad(
    (signal) => call("GET", "/migrations", { query: { status: wanted, source, target, cursor, limit: 50 }, signal }),
    [status, source, target, cursor],
    { everyMs: 3000 },
  );
  return h(
    "div",
    {},
    h(WorkHead, { current: "/migrations", second: "Moves of instances between hosts" }),
    h(
      "div",
      { class: "bar-of-tools filters" },
      h(SelectFilter, {
        name: "status",
        label: "Status",
        usual: "moving",
        options: [
          { value: "any", name: "Any status" },
          ...STATUSES.map(([value, name]) => ({ value: String(value), name: String(name) })),
        ],
      }),
      source || target
        ? h(
            "button",
            { class: "button", type: "button", onClick: () => setQuery({ source: null, target: null, cursor: null }) },
            `${source ? `from ${source}` : ""}${target ? `to ${target}` : ""} ✕`,
          )
        : null,
    ),
    h(Loaded, {
      of: loaded,
      children: (page) =>
        h(Card, { flush: true }, h(List, { migrations: page.migrations }), h(Pages, { next: page.next, cursor })),
    }),
  );
}

/** @param {{migrations: any[]}} props */
function List({ migrations }) {
  return h(Table, {
    label: "Migrations",
    rows: migrations,
    keyOf: (row) => row.uuid,
    empty: "No migration matches.",
    columns: [
      { title: "Instance", class: "nowrap", cell: (row) => instanceLink(row.instance, row.instance_name) },
      { title: "Kind", cell: (row) => row.kind },
      { title: "Status", cell: (row) => STATUSES.find(([value]) => value === row.status)?.[1] ?? row.status },
      { title: "From", class: "nowrap", cell: (row) => hostLink(row.source_node) },
      { title: "To", class: "nowrap", cell: (row) => hostLink(row.target_node) },
      { title: "Operation", cell: (row) => (row.operation ? operationLink(row.operation) : "–") },
      { title: "Requested", isNumber: true, cell: (row) => h(When, { seconds: row.created_at_s }) },
    ],
  });
}
