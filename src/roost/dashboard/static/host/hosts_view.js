/** The hosts as a list: which have the least free memory, which are disabled or down, and which are in a rack. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { h } from "preact";
import { className, count, counted, percent, shortAmount } from "../page/format.js";
import { Link, setQuery } from "../page/router.js";
import { changes, fleet, follow, load, nameOf, problem } from "../fleet/fleet_data.js";
import { DISABLED, DOWN, DRAINING, OVER } from "../fleet/fleet_file.js";
import { stateText } from "../fleet/map.js";
import { Card, Head, Loaded, Meter, Table } from "../parts/elements.js";
import { Input } from "../parts/fields.js";
import { chosenOf, SelectFilter } from "../parts/filters.js";
import { hostLink } from "../parts/links.js";
import { rowsOf } from "./host_rows.js";

/** @typedef {import("./host_rows.js").Row} Row */

const STEP = 100; // rows at first, and more with each press
const REFRESH_MS = 2000; // at most as often: the order of many hosts takes some milliseconds
const STATES = [
  { value: "", name: "Any state" },
  { value: String(DISABLED), name: "Disabled" },
  { value: String(DOWN), name: "Down" },
  { value: String(DRAINING), name: "Draining" },
  { value: String(OVER), name: "Over capacity" },
];

export function HostsView() {
  useEffect(follow, []);
  const error = problem.value;
  const loaded = { data: fleet.value, error, isLoading: !error, again: () => void load() };
  return h(
    "div",
    {},
    h(Head, {
      crumbs: [h(Link, { to: "/" }, "Fleet"), " / Hosts"],
      title: "Hosts",
      second: "Free amounts are rounded to a thousandth of the capacity",
    }),
    h(Loaded, { of: loaded, children: (data) => h(List, { data }) }),
  );
}

/** A number that changes with the fleet, every few seconds at most. */
function useTurn() {
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setTurn(changes.peek()), REFRESH_MS);
    return () => clearInterval(timer);
  }, []);
  return turn;
}

/** @param {{data: import("../fleet/fleet_file.js").Fleet}} props */
function List({ data }) {
  const [limit, setLimit] = useState(STEP);
  const [sort, state, text] = [chosenOf("sort"), chosenOf("state"), chosenOf("find")];
  const turn = useTurn();
  const { rows, found } = useMemo(
    () => rowsOf(data, nameOf, { sort, state: Number(state), text, limit }),
    [data, sort, state, text, limit, turn],
  );
  const orders = data.classes.map((value) => ({ value, name: `Least free ${className(value)} first` }));
  return h(
    Card,
    { flush: true },
    h(
      "div",
      { class: "bar-of-tools card-tools" },
      h(SelectFilter, { name: "sort", label: "Order", options: [{ value: "", name: "By name" }, ...orders] }),
      h(SelectFilter, { name: "state", label: "State", options: STATES }),
      h(Input, {
        type: "search",
        placeholder: "Name, zone or rack",
        "aria-label": "Find hosts by name, zone or rack",
        value: text,
        onText: (find) => setQuery({ find }),
      }),
      h("span", { class: "second", role: "status" }, `${count(found)} of ${counted(data.hosts, "host")}`),
    ),
    h(Table, {
      label: "Hosts",
      rows,
      keyOf: (row) => row.host,
      empty: data.hosts ? "No host matches." : "No host has registered.",
      columns: [
        { title: "Host", class: "nowrap", cell: (row) => hostLink(row.name) },
        { title: "State", cell: (row) => stateText(row.state) },
        { title: "Zone", cell: (row) => row.zone || "–" },
        { title: "Rack", class: "nowrap", cell: (row) => row.rack || "–" },
        { title: "Instances", isNumber: true, cell: (row) => count(row.instances) },
        ...data.classes.map((name, at) => ({
          title: className(name),
          cell: (/** @type {Row} */ row) => h(Use, { use: row.uses[at] ?? null, name }),
        })),
      ],
    }),
    found > rows.length
      ? h(
          "div",
          { class: "table-end" },
          h("button", { class: "button", type: "button", onClick: () => setLimit(limit + STEP) }, "Show more"),
        )
      : null,
  );
}

/** @param {{use: import("./host_rows.js").Use | null, name: string}} props */
function Use({ use, name }) {
  if (!use) return "–";
  return h(
    "div",
    {},
    h("div", { class: "nowrap" }, `${shortAmount(name, use.free)} free`),
    h(Meter, { share: use.share, label: `${percent(use.share)} used` }),
  );
}
