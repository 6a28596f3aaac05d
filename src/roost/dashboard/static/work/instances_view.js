/** The instances, in the order of their requests. */
import { h } from "preact";
import { call, may } from "../page/api.js";
import { age } from "../page/format.js";
import { useLoad } from "../page/load.js";
import { go, Link, place, setQuery } from "../page/router.js";
import { Card, Loaded, Select, Table } from "../parts/elements.js";
import { SearchForm } from "../parts/fields.js";
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
  const { query } = place.value;
  const get = (/** @type {string} */ name) => query.get(name) ?? "";
  const filters = {
    name: namePattern(get("name")),
    status: get("status"),
    host: get("host"),
    project: get("project"),
    cursor: get("cursor"),
  };
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
      second: "What runs, on which host, and what happens to it",
      acts:
        may("instances:create") && may("explanations:create")
          ? h(Link, { class: "button primary", to: "/try" }, "Create instances")
          : null,
    }),
    h(Filters, { get }),
    h(Loaded, {
      of: loaded,
      children: (page) =>
        h(
          Card,
          { flush: true },
          h(List, { instances: page.instances }),
          h(Pages, { next: page.next, cursor: filters.cursor }),
        ),
    }),
  );
}

/** @param {{get: (name: string) => string}} props */
function Filters({ get }) {
  const texts = { name: get("name"), host: get("host"), ...(may("all_projects") ? { project: get("project") } : {}) };
  const labels = { name: "Name or uuid", host: "Host", ...(may("all_projects") ? { project: "Project" } : {}) };
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
      h(Select, {
        label: "Status",
        value: get("status"),
        options: [{ value: "", name: "Any status" }, ...STATUSES.map((value) => ({ value, name: statusText(value) }))],
        onChoose: (value) => setQuery({ status: value, cursor: null }),
      }),
    ),
  );
}

/** @param {{instances: any[]}} props */
function List({ instances }) {
  return h(Table, {
    label: "Instances",
    rows: instances,
    keyOf: (row) => row.uuid,
    empty: "No instance matches.",
    columns: [
      { title: "Name", class: "nowrap", cell: (row) => instanceLink(row.uuid, row.name) },
      { title: "Status", cell: (row) => h(StatusBadge, { status: row.status, task: row.task }) },
      { title: "Host", class: "nowrap", cell: (row) => hostLink(row.node || row.host) },
      { title: "Project", cell: (row) => row.project_id || "–" },
      { title: "Problem", class: "problem-cell", cell: (row) => row.fault },
      { title: "Changed", isNumber: true, cell: (row) => (row.changed_at_s ? age(row.changed_at_s) : "–") },
    ],
  });
}
