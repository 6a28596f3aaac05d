/** Changes with their users and times. */
import { h } from "preact";
import { call, may } from "../page/api.js";
import { useLoad } from "../page/load.js";
import { Link, setQuery } from "../page/router.js";
import { Card, Head, Loaded, NoRight, Table, When } from "../parts/elements.js";
import { SearchForm } from "../parts/fields.js";
import { chosenOf, PeriodFilter, periodStart, SelectFilter } from "../parts/filters.js";
import { decisionLink, hostLink, instanceLink, operationLink } from "../parts/links.js";
import { Pages } from "../parts/pages.js";

const KINDS = ["host", "instance", "decision", "operation", "aggregate", "group", "flavor", "image", "settings"];
const PLACEMENT = ["resource_provider", "inventory", "allocation", "trait", "resource_class"];

export function ChangesView() {
  const [kind, object, user, period, cursor] = ["kind", "object", "user", "period", "cursor"].map((name) =>
    chosenOf(name),
  );
  const query = { kind, object, user, cursor, limit: 50 };
  const loaded = useLoad(
    (signal) => call("GET", "/changes", { query: { ...query, since: periodStart() }, signal }),
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
            h(SelectFilter, {
              name: "kind",
              label: "Kind of change",
              options: [
                { value: "", name: "All kinds" },
                ...[...KINDS, ...PLACEMENT].map((each) => ({ value: each, name: each.replace("_", " ") })),
              ],
            }),
            h(PeriodFilter, {}),
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
      : h(NoRight, { to: "see the changes" }),
  );
}

/** A table of changes. @param {{changes: any[]}} props */
function Changes({ changes }) {
  return h(Table, {
    label: "Changes",
    rows: changes.map((each, at) => ({ ...each, at })),
    keyOf: (row) => `${row.at_s} ${row.request_id} ${row.object} ${row.at}`,
    empty: "No change matches.",
    columns: [
      { title: "Time", class: "nowrap", cell: (row) => h(When, { seconds: row.at_s, isExact: true }) },
      { title: "User", cell: (row) => row.user_id || "the server" },
      { title: "Act", cell: (row) => actText(row.kind) },
      { title: "Object", class: "nowrap", cell: (row) => objectLink(row) },
      { title: "Details", cell: (row) => detailsText(row.details) },
      { title: "Project", cell: (row) => row.project_id || "–" },
      { title: "Request", class: "nowrap", cell: (row) => h("span", { class: "mono" }, row.request_id || "–") },
    ],
  });
}

/** The latest changes, for a narrow card. @param {{changes: any[]}} props */
export function ShortChanges({ changes }) {
  if (!changes.length) return h("p", { class: "empty" }, "No change is stored.");
  return h(
    "ol",
    { class: "events", "aria-label": "Latest changes" },
    changes.map((row, at) =>
      h(
        "li",
        { key: `${row.at_s} ${at}` },
        h("span", { class: "second" }, h(When, { seconds: row.at_s })),
        h("span", {}, actText(row.kind), " ", objectLink(row), ` by ${row.user_id || "the server"}`),
      ),
    ),
  );
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
