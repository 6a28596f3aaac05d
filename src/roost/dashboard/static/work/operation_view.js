/** An operation: its step, its orders to hosts, its instances or sub-operations, and its story. */
import { h } from "preact";
import { call, may } from "../page/api.js";
import { age, capital, counted, dateTime, shortTime } from "../page/format.js";
import { useLoad } from "../page/load.js";
import { Link } from "../page/router.js";
import { Card, Facts, Head, Loaded, Table } from "../parts/elements.js";
import { instanceLink, operationLink } from "../parts/links.js";
import { kindText } from "../parts/event_words.js";
import { Story } from "../parts/story.js";
import { PlanMoves, PlanProgress, limitRows } from "./applied_plan.js";
import { DrainButtons } from "./drain_buttons.js";
import { DrainBar, OutcomeBadge, StatusBadge } from "./frame.js";

/** @param {{parts: string[]}} props */
export function OperationView({ parts }) {
  const uuid = parts[1] ?? "";
  const loaded = useLoad((signal) => call("GET", `/operations/${encodeURIComponent(uuid)}`, { signal }), [uuid], {
    everyMs: 1500,
  });
  const head = h(Head, { crumbs: h(Link, { to: "/operations" }, "Operations"), title: "Operation" });
  return h(Loaded, { of: loaded, head, children: (operation) => h(Whole, { operation, again: loaded.again }) });
}

/** @param {{operation: any, again: () => void}} props */
function Whole({ operation, again }) {
  const isOpen = operation.outcome === "open";
  const subject = operation.drain ? operation.drain.host : operation.instances[0]?.name;
  const names = new Map(operation.instances.map((/** @type {any} */ each) => [each.uuid, each.name]));
  return h(
    "div",
    {},
    h(Head, {
      crumbs: [h(Link, { to: "/operations" }, "Operations"), " / ", h("span", { class: "mono" }, operation.uuid)],
      title: [
        capital(`${kindText(operation.kind)}${subject ? ` ${subject}` : ""}`),
        " ",
        h(OutcomeBadge, { operation }),
      ],
      second: [
        `Requested ${age(operation.created_at_s)}`,
        operation.user_id ? ` by ${operation.user_id}` : "",
        isOpen
          ? ` · next step: ${operation.step}`
          : ` · took ${shortTime(Math.max(0, operation.changed_at_s - operation.created_at_s))}`,
      ],
      acts: h(DrainButtons, { operations: [operation], onChange: again }),
    }),
    h(
      "div",
      { class: "stack" },
      operation.problem ? h("div", { class: "problem" }, operation.problem) : null,
      operation.drain ? h(Card, { title: "Progress" }, h(DrainBar, { drain: operation.drain })) : null,
      operation.plan ? h(PlanProgress, { plan: operation.plan }) : null,
      h(
        "div",
        { class: "columns" },
        h(
          "div",
          { class: "stack" },
          operation.plan ? h(PlanMoves, { plan: operation.plan, names }) : null,
          h(Instances, { operation }),
          h(Orders, { orders: operation.orders }),
        ),
        h(
          "div",
          { class: "stack" },
          h(Details, { operation }),
          h(Card, { title: "Story", flush: true }, h(Story, { events: operation.story, names, label: "Story" })),
        ),
      ),
    ),
  );
}

/** @param {{operation: any}} props */
function Details({ operation }) {
  /** @type {[any, any][]} */
  const rows = [
    ["Step", operation.step],
    ["Project", operation.project_id || "–"],
    ["Request", operation.request_id ? h("span", { class: "mono" }, operation.request_id) : "–"],
    ["Requested", dateTime(operation.created_at_s)],
    ["Last step", dateTime(operation.changed_at_s)],
  ];
  if (operation.drain) rows.unshift(["At once", operation.drain.at_once]);
  if (operation.plan) rows.unshift(...limitRows(operation.plan));
  return h(
    Card,
    { title: "Details" },
    h(Facts, { rows }),
    operation.drain && may("operations:list")
      ? h("p", { class: "below" }, h(Link, { to: "/drains" }, "All drains"))
      : null,
  );
}

/** @param {{operation: any}} props */
function Instances({ operation }) {
  const { instances } = operation;
  if (!instances.length) return null;
  const hasParts = instances.some((/** @type {any} */ each) => each.operation);
  return h(
    Card,
    { title: counted(instances.length, "instance"), flush: true },
    h(Table, {
      label: "Instances of the operation",
      rows: instances,
      keyOf: (row) => row.uuid,
      columns: [
        { title: "Name", class: "nowrap", cell: (row) => instanceLink(row.uuid, row.name) },
        { title: "Status", cell: (row) => h(StatusBadge, { status: row.status }) },
        { title: "Service", cell: (row) => row.host || "–" },
        ...(hasParts
          ? [
              {
                title: "Sub-operation",
                cell: (/** @type {any} */ row) => (row.operation ? operationLink(row.operation) : "–"),
              },
            ]
          : []),
        { title: "Problem", class: "problem-cell", cell: (row) => row.fault },
      ],
    }),
  );
}

/** @param {{orders: any[]}} props */
function Orders({ orders }) {
  if (!orders.length) return null;
  return h(
    Card,
    { title: "Orders to hosts", flush: true },
    h(Table, {
      label: "Orders",
      rows: orders,
      keyOf: (row) => row.number,
      columns: [
        { title: "Order", isNumber: true, cell: (row) => row.number },
        { title: "Action", cell: (row) => kindText(row.action) },
        { title: "Host", cell: (row) => row.host },
        { title: "State", cell: (row) => row.state },
        { title: "Answer", cell: (row) => row.outcome || "–" },
        { title: "Problem", class: "problem-cell", cell: (row) => row.problem },
      ],
    }),
  );
}
