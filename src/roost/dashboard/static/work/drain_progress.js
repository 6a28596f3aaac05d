/** The progress of drains: a bar for each, the instances that stayed, and buttons. */
import { h } from "preact";
import { call, may } from "../page/api.js";
import { age, counted } from "../page/format.js";
import { useLoad } from "../page/load.js";
import { Link } from "../page/router.js";
import { Card, Loaded, Table } from "../parts/elements.js";
import { hostLink, instanceLink, operationLink } from "../parts/links.js";
import { DrainButtons } from "./drain_buttons.js";
import { DrainBar, OutcomeBadge } from "./frame.js";
import { progressOf } from "./sums.js";

const STORIES_MAX = 20; // drains whose story is loaded

/** Drains by their operations. @param {{uuids: string[]}} props */
export function DrainProgressCards({ uuids }) {
  const loaded = useLoad(
    (signal) =>
      Promise.all(
        uuids.slice(0, STORIES_MAX).map((uuid) => call("GET", `/operations/${encodeURIComponent(uuid)}`, { signal })),
      ),
    [uuids.join()],
    { everyMs: 1500 },
  );
  return h(Loaded, {
    of: loaded,
    children: (operations) =>
      h(
        "div",
        { class: "stack" },
        operations.length > 1 ? h(Sum, { operations, again: loaded.again }) : null,
        operations.map((/** @type {any} */ each) =>
          h(DrainCard, { key: each.uuid, operation: each, again: loaded.again }),
        ),
        uuids.length > STORIES_MAX
          ? h("p", { class: "second" }, `And ${counted(uuids.length - STORIES_MAX, "more drain")}.`)
          : null,
        h("p", {}, h(Link, { to: "/drains" }, "All drains")),
      ),
  });
}

/** @param {{operations: any[], again: () => void}} props */
function Sum({ operations, again }) {
  const sum = { host: counted(operations.length, "host"), instances: 0, left: 0, moving: 0, stayed: 0 };
  for (const { drain } of operations) {
    const { all, moving, stayed, left } = progressOf(drain);
    sum.instances += all;
    sum.moving += moving;
    sum.stayed += stayed;
    sum.left += left;
  }
  return h(
    Card,
    { title: `All ${sum.host}`, acts: h(DrainButtons, { operations, onChange: again }) },
    h(DrainBar, { drain: sum }),
  );
}

/** @param {{operation: any, again: () => void}} props */
function DrainCard({ operation, again }) {
  const names = new Map(operation.instances.map((/** @type {any} */ each) => [each.uuid, each.name]));
  const stays = operation.story.filter((/** @type {any} */ event) => event.kind === "drain.stayed");
  return h(
    Card,
    {
      title: ["Drain of ", operation.drain.host, " ", h(OutcomeBadge, { operation })],
      second: [
        `requested ${age(operation.created_at_s)}, ${operation.drain.at_once} at once · `,
        operationLink(operation.uuid, "story and sub-operations"),
      ],
      acts: h(DrainButtons, { operations: [operation], onChange: again }),
    },
    h(DrainBar, { drain: operation.drain }),
    operation.outcome === "done"
      ? h("p", { class: "done below", role: "status" }, `${operation.drain.host} is empty.`)
      : null,
    operation.problem ? h("p", { class: "problem below" }, operation.problem) : null,
    stays.length
      ? h(
          "ul",
          { class: "story stays" },
          stays.map((/** @type {any} */ event, /** @type {number} */ at) =>
            h(
              "li",
              { key: at },
              instanceLink(event.instance, names.get(event.instance)),
              " stays: ",
              event.told.problem,
            ),
          ),
        )
      : null,
  );
}

/** The drains under way, and those that ended last; of one service, or of all if it is empty. @param {{host: string}} props */
export function OpenDrains({ host }) {
  const loaded = useLoad(
    async (signal) => {
      if (!may("operations:list")) return [];
      const open = await call("GET", "/operations", { query: { outcome: "open", kind: "drain", limit: 200 }, signal });
      const ended = await call("GET", "/operations", { query: { recent: true, kind: "drain", limit: 20 }, signal });
      const all = [...open.operations, ...ended.operations];
      return host ? all.filter((each) => each.drain?.host.toLowerCase() === host.toLowerCase()).slice(0, 3) : all;
    },
    [host],
    { everyMs: 2000 },
  );
  const drains = loaded.data ?? [];
  if (host && !drains.length) return null;
  return h(
    Card,
    { title: host ? "Drains" : "Current and recent drains", flush: true },
    h(Loaded, {
      of: loaded,
      children: () =>
        h(Table, {
          label: "Drains",
          rows: drains,
          keyOf: (row) => row.uuid,
          empty: "No host is drained.",
          columns: [
            ...(host
              ? []
              : [{ title: "Host", class: "nowrap", cell: (/** @type {any} */ row) => hostLink(row.drain.host) }]),
            { title: "Result", cell: (row) => h(OutcomeBadge, { operation: row }) },
            { title: "Progress", class: "drain-cell", cell: (row) => h(DrainBar, { drain: row.drain }) },
            { title: "Requested", isNumber: true, cell: (row) => operationLink(row.uuid, age(row.created_at_s)) },
            {
              title: h("span", { class: "hidden-text" }, "Acts"),
              cell: (row) => h(DrainButtons, { operations: [row], onChange: loaded.again }),
            },
          ],
        }),
    }),
  );
}
