/** Changes with their users and times. */
import { h } from "preact";
import { call, may } from "../page/api.js";
import { age, dateTime } from "../page/format.js";
import { useLoad } from "../page/load.js";
import { Link, place, setQuery } from "../page/router.js";
import { Card, Choice, Head, Loaded, NoRight, Select, Table } from "../parts/elements.js";
import { SearchForm } from "../parts/fields.js";
import { decisionLink, hostLink, instanceLink, operationLink } from "../parts/links.js";
import { Pages } from "../parts/pages.js";

const KINDS = ["host", "instance", "decision", "operation", "aggregate", "group", "flavor", "image", "settings"];
const PLACEMENT = ["resource_provider", "inventory", "allocation", "trait", "resource_class"];
const PERIODS = [
  { value: "", name: "All" },
  { value: "3600", name: "Hour" },
  { value: "86400", name: "Day" },
  { value: "604800", name: "Week" },
];

export function ChangesView() {
  const { query } = place.value;
  const [kind, object, user, period, cursor] = ["kind", "object", "user", "period", "cursor"].map(
    (name) => query.get(name) ?? "",
  );
  const loaded = useLoad(
    (signal) => {
      const since = period ? Math.floor(Date.now() / 1000) - Number(period) : null;
      return call("GET", "/changes", { query: { kind, object, user, since, cursor, limit: 50 }, signal });
    },
    [kind, object, user, period, cursor],
    { everyMs: cursor ? 0 : 10_000 },
  );
  return h(
    "div",
    {},
    h(Head, {
      crumbs: [h(Link, { to: "/settings" }, "Settings"), " / Changes"],
      title: "Changes",
      second: "Changes by clients and reloads of the settings, newest first",
    }),
    may("changes:list")
      ? [
          h(
            "div",
            { key: "tools", class: "bar-of-tools filters" },
            h(Select, {
              label: "Kind of change",
              value: kind ?? "",
              options: [
                { value: "", name: "All kinds" },
                ...[...KINDS, ...PLACEMENT].map((each) => ({ value: each, name: each.replace("_", " ") })),
              ],
              onChoose: (value) => setQuery({ kind: value, cursor: null }),
            }),
            h(Choice, {
              label: "Period",
              value: period ?? "",
              options: PERIODS,
              onChoose: (value) => setQuery({ period: value, cursor: null }),
            }),
            h(SearchForm, {
              texts: { object: object ?? "", user: user ?? "" },
              labels: { object: "Name or uuid of an object", user: "User id" },
              size: 22,
              onSearch: (texts) => setQuery({ ...texts, cursor: null }),
            }),
          ),
          h(Loaded, {
            key: "list",
            of: loaded,
            children: (page) =>
              h(
                Card,
                { flush: true },
                h(Changes, { changes: page.changes }),
                h(Pages, { next: page.next, cursor: cursor ?? "" }),
              ),
          }),
        ]
      : h(NoRight, { of: "the list of changes" }),
  );
}

/** A table of changes. @param {{changes: any[], isShort?: boolean}} props */
export function Changes({ changes, isShort = false }) {
  return h(Table, {
    label: "Changes",
    rows: changes.map((each, at) => ({ ...each, at })),
    keyOf: (row) => `${row.at_s} ${row.request_id} ${row.object} ${row.at}`,
    empty: "No change matches.",
    columns: [
      { title: "When", class: "nowrap", cell: (row) => h("span", { title: dateTime(row.at_s) }, age(row.at_s)) },
      { title: "User", cell: (row) => row.user_id || "the server" },
      { title: "Act", cell: (row) => actText(row.kind) },
      { title: "Object", cell: (row) => objectLink(row) },
      ...(isShort
        ? []
        : [
            { title: "Details", cell: (/** @type {any} */ row) => detailsText(row.details) },
            { title: "Project", cell: (/** @type {any} */ row) => row.project_id || "–" },
            {
              title: "Request",
              class: "nowrap",
              cell: (/** @type {any} */ row) => h("span", { class: "mono" }, row.request_id || "–"),
            },
          ]),
    ],
  });
}

/** `host.force_down` → `host: force down`. @param {string} kind */
function actText(kind) {
  const [noun, verb] = kind.split(".");
  return `${(noun ?? "").replaceAll("_", " ")}: ${(verb ?? "").replaceAll("_", " ")}`;
}

/** @param {Record<string, string>} details */
const detailsText = (details) =>
  Object.entries(details)
    .map(([name, value]) => `${name}: ${value}`)
    .join(", ") || "–";

/** @param {any} row */
function objectLink(row) {
  if (!row.object) return "–";
  if (row.kind.startsWith("host.")) return hostLink(row.object);
  if (row.kind.startsWith("instance.")) return instanceLink(row.object);
  if (row.kind.startsWith("operation.")) return operationLink(row.object);
  if (row.kind.startsWith("decision.")) return decisionLink(row.object);
  return row.object;
}
