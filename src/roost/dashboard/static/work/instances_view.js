/** The instances, in the order of their requests. */
import { h } from "preact";
import { call, may } from "../page/api.js";
import { useLoad } from "../page/load.js";
import { go, Link, setQuery } from "../page/router.js";
import { Card, Loaded, Table, When } from "../parts/elements.js";
import { SearchForm } from "../parts/fields.js";
import { chosenOf, SelectFilter } from "../parts/filters.js";
import { hostLink, instanceLink } from "../parts/links.js";
import { Pages } from "../parts/pages.js";
import { statusText } from "./acts.js";
import { StatusBadge, WorkHead } from "./frame.js";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const STATUSES = ["ACTIVE", "SHUTOFF", "BUILD", "ERROR", "VERIFY_RESIZE", "SHELVED", "SHELVED_OFFLOADED", "DELETED"];
const FIELDS = "uuid,name,status,task,fault,host,node,project_id,created_at_s,changed_at_s";

/** A filter for names that begin with a text; `*` at the end is optional. @param {string} text */
export const namePattern = (text) => (text && !text.endsWith("*") ? `${text}*` : text);

export function InstancesView() {
  const [name, status, host, project, cursor] = ["name", "status", "host", "project", "cursor"].map((each) =>
    chosenOf(each),
  );
  const filters = { name: namePattern(name ?? ""), status, host, project, cursor };
  const loaded = useLoad(
    (signal) => call("GET", "/instances", { query: { ...filters, fields: FIELDS, limit: 50 }, signal }),
    Object.values(filters),
    { everyMs: 4000 },
  );
  return h(
    "div",
    {},
    h(WorkHead, {
      current: "/instances",
      second: "Instances, their hosts, and the operations on them",
      acts:
        may("instances:create") && may("explanations:create")
          ? h(Link, { class: "button primary", to: "/try" }, "Create instances")
          : null,
    }),
    h(Filters, {}),
    h(Loaded, {
      of: loaded,
      children: (page) =>
        h(
          Card,
          { flush: true },
          h(List, {
            instances: page.instances,
            empty: name || status || host || project ? "No instance matches." : "There are no instances.",
          }),
          h(Pages, { next: page.next, cursor: cursor ?? "" }),
        ),
    }),
  );
}

function Filters() {
  const labels = { name: "Name or uuid", host: "Host", ...(may("all_projects") ? { project: "Project" } : {}) };
  const texts = Object.fromEntries(Object.keys(labels).map((name) => [name, chosenOf(name)]));
  const search = (/** @type {Record<string, string>} */ { name = "", ...others }) => {
    if (UUID.test(name)) go(`/instances/${name.toLowerCase()}`);
    else setQuery({ name, ...others, cursor: null });
  };
  return h(
    "div",
    { class: "filters" },
    h(
      SearchForm,
      { texts, labels, onSearch: search },
      h(SelectFilter, {
        name: "status",
        label: "Status",
        options: [{ value: "", name: "Any status" }, ...STATUSES.map((value) => ({ value, name: statusText(value) }))],
      }),
    ),
  );
}

/** @param {{instances: any[], empty: string}} props */
function List({ instances, empty }) {
  return h(Table, {
    label: "Instances",
    rows: instances,
    keyOf: (row) => row.uuid,
    empty,
    columns: [
      { title: "Name", class: "nowrap", cell: (row) => instanceLink(row.uuid, row.name) },
      { title: "Status", cell: (row) => h(StatusBadge, { status: row.status, task: row.task }) },
      { title: "Host", class: "nowrap", cell: (row) => hostLink(row.node || row.host) },
      { title: "Project", cell: (row) => row.project_id || "–" },
      { title: "Problem", class: "problem-cell", cell: (row) => row.fault },
      { title: "Changed", isNumber: true, cell: (row) => h(When, { seconds: row.changed_at_s }) },
    ],
  });
}
