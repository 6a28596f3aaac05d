/** Migrations, in the order of their requests. */
import { h } from "preact";
import { call } from "../page/api.js";
import { age } from "../page/format.js";
import { useLoad } from "../page/load.js";
import { place, setQuery } from "../page/router.js";
import { Card, Loaded, Select, Table } from "../parts/elements.js";
import { hostLink, instanceLink, operationLink } from "../parts/links.js";
import { Pages } from "../parts/pages.js";
import { WorkHead } from "./frame.js";

const STATUSES = [
  ["moving", "in progress"],
  ["finished", "wait for a confirmation"],
  ["left", "leave the source"],
  ["reverting", "return"],
  ["confirmed", "done"],
  ["reverted", "reverted"],
  ["failed", "failed"],
];

export function MigrationsView() {
  const { query } = place.value;
  const status = query.get("status") ?? "moving";
  const source = query.get("source") ?? "";
  const target = query.get("target") ?? "";
  const cursor = query.get("cursor") ?? "";
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
      h(Select, {
        label: "Status",
        value: status,
        options: [
          { value: "any", name: "Any status" },
          ...STATUSES.map(([value, name]) => ({ value: String(value), name: String(name) })),
        ],
        onChoose: (value) => setQuery({ status: value, cursor: null }),
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
      { title: "Requested", isNumber: true, cell: (row) => age(row.created_at_s) },
    ],
  });
}
