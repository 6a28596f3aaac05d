/** An instance: its host, its allocations, its story, and its acts. */
import { useState } from "preact/hooks";
import { h } from "preact";
import { call, may } from "../page/api.js";
import { amount, age, className, dateTime } from "../page/format.js";
import { useLoad } from "../page/load.js";
import { Link } from "../page/router.js";
import { Card, Facts, Head, Loaded, Table, When } from "../parts/elements.js";
import { decisionLink, hostLink, operationLink } from "../parts/links.js";
import { kindText } from "../parts/event_words.js";
import { Story } from "../parts/story.js";
import { OutcomeBadge, StatusBadge } from "./frame.js";
import { InstanceActs } from "./instance_acts.js";

/** @param {{parts: string[]}} props */
export function InstanceView({ parts }) {
  const uuid = parts[1] ?? "";
  const loaded = useLoad((signal) => call("GET", `/instances/${encodeURIComponent(uuid)}`, { signal }), [uuid], {
    everyMs: 2000,
  });
  const head = h(Head, { crumbs: h(Link, { to: "/instances" }, "Instances"), title: "Instance" });
  return h(Loaded, { of: loaded, head, children: (instance) => h(Whole, { instance, again: loaded.again }) });
}

/** Whether the host of an instance is known to be down. @param {any} instance */
function useIsDown(instance) {
  const { node } = instance;
  const loaded = useLoad(
    (signal) =>
      node && may("hosts:show") && may("instances:evacuate")
        ? call("GET", `/hosts/${encodeURIComponent(node)}`, { signal })
        : Promise.resolve(null),
    [node],
    { everyMs: 15_000 },
  );
  return loaded.data ? !loaded.data.up : false;
}

/** @param {{instance: any, again: () => void}} props */
function Whole({ instance, again }) {
  const [done, setDone] = useState(/** @type {{label: string, operation: string} | null} */ (null));
  const isDown = useIsDown(instance);
  const finish = (/** @type {string} */ label, /** @type {any} */ answer) => {
    setDone({ label, operation: answer?.operation ?? "" });
    again();
  };
  return h(
    "div",
    {},
    h(Head, {
      crumbs: [h(Link, { to: "/instances" }, "Instances"), " / ", h("span", { class: "mono" }, instance.uuid)],
      title: [instance.name || "Claim", " ", h(StatusBadge, { status: instance.status, task: instance.task })],
      second: [
        instance.node ? ["on ", hostLink(instance.node)] : "on no host",
        instance.project_id ? ` · project ${instance.project_id}` : "",
        instance.created_at_s ? ` · requested ${age(instance.created_at_s)}` : "",
      ],
      acts: h(InstanceActs, { instance, isDown, onDone: finish }),
    }),
    h(
      "div",
      { class: "stack" },
      done
        ? h(
            "div",
            { class: "notice", role: "status" },
            `${done.label}: accepted. `,
            done.operation ? h("span", { class: "in-text" }, operationLink(done.operation, "Show its progress")) : null,
          )
        : null,
      instance.fault
        ? h(
            "div",
            { class: "problem" },
            instance.fault,
            instance.decision ? [" ", h("span", { class: "in-text" }, decisionLink(instance.decision, "Why?"))] : null,
          )
        : null,
      h(
        "div",
        { class: "columns" },
        h(
          "div",
          { class: "stack" },
          h(Allocations, { instance }),
          h(Attempts, { attempts: instance.attempts }),
          h(Operations, { operations: instance.operations }),
          h(Migrations, { migrations: instance.migrations }),
        ),
        h(
          "div",
          { class: "stack" },
          h(Details, { instance }),
          h(Card, { title: "Story", flush: true }, h(Story, { events: instance.story, label: "Story" })),
        ),
      ),
    ),
  );
}

/** @param {{instance: any}} props */
function Details({ instance }) {
  /** @type {[any, any][]} */
  const rows = [
    ["Service", instance.host || "–"],
    ["Node", hostLink(instance.node)],
    ["Server group", instance.group_name || instance.group || "–"],
    ["Decision", instance.decision ? decisionLink(instance.decision) : "–"],
    ["User", instance.user_id || "–"],
  ];
  if (instance.operation) rows.unshift(["In progress", operationLink(instance.operation)]);
  if (instance.created_at_s) rows.push(["Requested", dateTime(instance.created_at_s)]);
  if (instance.changed_at_s) rows.push(["Changed", dateTime(instance.changed_at_s)]);
  return h(Card, { title: "Details" }, h(Facts, { rows }));
}

/** @param {{instance: any}} props */
function Allocations({ instance }) {
  const rows = Object.entries(instance.allocations).flatMap(([uuid, resources]) =>
    Object.entries(/** @type {Record<string, number>} */ (resources)).map(([name, value]) => ({ uuid, name, value })),
  );
  return h(
    Card,
    { title: "Allocations", flush: true },
    h(Table, {
      label: "Allocations",
      rows,
      keyOf: (row) => `${row.uuid} ${row.name}`,
      empty: "It holds nothing.",
      columns: [
        {
          title: "Provider",
          cell: (row) => h("span", { class: "mono" }, instance.provider_names[row.uuid] ?? row.uuid),
        },
        { title: "Resource", cell: (row) => className(row.name) },
        { title: "Amount", isNumber: true, cell: (row) => amount(row.name, row.value) },
      ],
    }),
  );
}

/** @param {{attempts: any[]}} props */
function Attempts({ attempts }) {
  if (!attempts.length) return null;
  return h(
    Card,
    { title: "Attempts to build it", flush: true },
    h(Table, {
      label: "Attempts",
      rows: attempts.map((each, at) => ({ ...each, at })),
      keyOf: (row) => row.at,
      columns: [
        { title: "Host", cell: (row) => hostLink(row.node) },
        { title: "Claim", cell: (row) => row.claim },
        { title: "Problem", cell: (row) => row.problem || "–" },
      ],
    }),
  );
}

/** @param {{operations: any[]}} props */
function Operations({ operations }) {
  return h(
    Card,
    { title: "Operations", flush: true },
    h(Table, {
      label: "Operations",
      rows: operations,
      keyOf: (row) => row.uuid,
      empty: "No operation is stored.",
      columns: [
        { title: "Kind", cell: (row) => operationLink(row.uuid, kindText(row.kind)) },
        { title: "Result", cell: (row) => h(OutcomeBadge, { operation: row }) },
        { title: "Requested", isNumber: true, cell: (row) => h(When, { seconds: row.created_at_s }) },
      ],
    }),
  );
}

/** @param {{migrations: any[]}} props */
function Migrations({ migrations }) {
  if (!migrations.length) return null;
  return h(
    Card,
    { title: "Migrations", flush: true },
    h(Table, {
      label: "Migrations",
      rows: [...migrations].reverse(),
      keyOf: (row) => row.uuid,
      columns: [
        { title: "Kind", cell: (row) => row.kind },
        { title: "Status", cell: (row) => row.status },
        { title: "From", cell: (row) => row.source_host },
        { title: "To", cell: (row) => row.target_host || "–" },
      ],
    }),
  );
}
