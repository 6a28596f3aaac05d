/** A plan that is applied: its progress, its limits and windows, and its moves. */
import { h } from "preact";
import { counted, dateTime } from "../page/format.js";
import { Card, Table } from "../parts/elements.js";
import { instanceLink } from "../parts/links.js";
import { PartsBar } from "./frame.js";
import { planProgressOf } from "./sums.js";

/** The limits of a plan, as rows of facts. @param {any} plan @returns {[any, any][]} */
export function limitRows(plan) {
  const each = `${plan.per_host} to or from a host, ${plan.per_group} in a server group`;
  return [
    ["At once", `${plan.at_once}; ${each}`],
    ["Windows", plan.windows.length ? `${plan.windows.join("; ")} (UTC)` : "always"],
    ...(plan.opens_at_s
      ? [/** @type {[any, any]} */ (["Next window", h("strong", {}, dateTime(plan.opens_at_s))])]
      : []),
    ["Deadline", plan.deadline_at_s ? dateTime(plan.deadline_at_s) : "none"],
  ];
}

/** The progress of a plan as a bar and in words. @param {{plan: any}} props */
export function PlanProgress({ plan }) {
  const sums = planProgressOf(plan);
  const text = [
    `${sums.moved} of ${counted(sums.all, "move")} done`,
    sums.moving ? `${sums.moving} under way` : "",
    sums.left ? `${sums.left} to come` : "",
    sums.failed ? `${sums.failed} failed` : "",
    sums.skipped ? `${sums.skipped} skipped` : "",
  ];
  return h(
    Card,
    { title: "Progress" },
    h(PartsBar, { label: "Moves of the plan", sums, text: text.filter(Boolean).join(", ") }),
    plan.opens_at_s
      ? h(
          "p",
          { class: "below", role: "status" },
          `No move begins before the next window, ${dateTime(plan.opens_at_s)}.`,
        )
      : null,
  );
}

/** The moves of a plan, in order. @param {{plan: any, names: Map<string, string>}} props */
export function PlanMoves({ plan, names }) {
  return h(
    Card,
    { title: counted(plan.moves.length, "move"), flush: true },
    h(Table, {
      label: "Moves of the plan",
      rows: plan.moves,
      keyOf: (row) => row.number,
      columns: [
        { title: "Move", isNumber: true, cell: (row) => row.number },
        {
          title: "Instance",
          class: "nowrap",
          cell: (row) => instanceLink(row.instance, names.get(row.instance) ?? row.instance),
        },
        { title: "From", class: "nowrap", cell: (row) => row.source },
        { title: "To", class: "nowrap", cell: (row) => (row.target ? ["→ ", row.target] : "no host") },
        { title: "After", cell: (row) => row.after.join(", ") || "–" },
        { title: "State", cell: (row) => row.state },
        { title: "Problem", class: "problem-cell", cell: (row) => row.problem },
      ],
    }),
  );
}
