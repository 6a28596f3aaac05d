/** What stands beside and below the map: sums, the chosen host, a histogram, the latest decisions, a table. */
import { h } from "preact";
import { call } from "../page/api.js";
import { className, clock, count, counted, percent, shortAmount } from "../page/format.js";
import { useLoad } from "../page/load.js";
import { go, Link, setQuery } from "../page/router.js";
import { Card, Meter, Table } from "../parts/elements.js";
import { paletteOf } from "./colours.js";
import { nameOf } from "./fleet_data.js";
import { NONE } from "./fleet_file.js";
import { GROUPINGS } from "./groups.js";
import { Shares, stateText } from "./map.js";
import { useIsDark } from "../parts/scheme.js";

/** @typedef {import("./fleet_file.js").Fleet} Fleet */

/** Classes that every fleet has come first. @param {string} name */
function rank(name) {
  const at = ["VCPU", "MEMORY_MB", "DISK_GB"].indexOf(name);
  return at < 0 ? 3 : at;
}

/** The sums of the fleet. @param {{isLarge: boolean}} props */
export function Figures({ isLarge }) {
  const status = useLoad(
    (signal) =>
      /** @type {Promise<{resources: Record<string, {used: number, capacity: number, share: number}>}>} */ (
        call("GET", "/status", { signal })
      ),
    [],
    { everyMs: 10_000 },
  );
  const classes = Object.entries(status.data?.resources ?? {})
    .sort(([left], [right]) => rank(left) - rank(right))
    .slice(0, 4);
  if (!classes.length) return null;
  if (isLarge)
    return h(
      "p",
      { class: "second", style: "margin:-8px 0 12px" },
      classes
        .map(([name, use]) => `${className(name)} ${percent(use.share)} of ${shortAmount(name, use.capacity)} used`)
        .join(" · "),
    );
  return h(
    "div",
    { class: "cards" },
    classes.map(([name, use]) =>
      h(
        "section",
        { class: "card", key: name },
        h("div", { class: "figure-row" }, h("h2", {}, className(name)), `of ${shortAmount(name, use.capacity)}`),
        h("div", { class: "figure" }, percent(use.share)),
        h(Meter, { share: use.share, label: `${className(name)} ${percent(use.share)} used` }),
      ),
    ),
  );
}

/** @param {{fleet: Fleet, column: number, turn: number, pinned: number, news: any[]}} props */
export function Side({ fleet, column, pinned, news }) {
  return h(
    "aside",
    { class: "stack", "aria-label": "Details" },
    pinned >= 0 ? h(Pinned, { fleet, host: pinned }) : null,
    h(Histogram, { fleet, column }),
    h(News, { news }),
  );
}

/** @param {{fleet: Fleet, host: number}} props */
function Pinned({ fleet, host }) {
  const name = nameOf(host);
  const where = fleet.places[fleet.place[host] ?? 0];
  return h(
    Card,
    {
      title: h(Link, { to: `/hosts/${encodeURIComponent(name)}`, class: "mono" }, name),
      second: `${stateText(fleet.states[host] ?? 0)} · ${where?.zone || "no zone"} · ${counted(fleet.instances[host] ?? 0, "instance")}`,
    },
    h(
      "div",
      { class: "stack", style: "margin-top:8px" },
      h(Shares, { fleet, host }),
      h(
        "div",
        { class: "acts" },
        h(
          "button",
          { class: "button", type: "button", onClick: () => go(`/hosts/${encodeURIComponent(name)}`) },
          "Open",
        ),
        h("button", { class: "button", type: "button", onClick: () => setQuery({ host: null }) }, "Close"),
      ),
    ),
  );
}

/** @param {{fleet: Fleet, column: number}} props */
function Histogram({ fleet, column }) {
  const { scale } = paletteOf(useIsDark());
  const bins = new Array(10).fill(0);
  let full = 0;
  let have = 0;
  for (let host = 0; host < fleet.hosts; host += 1) {
    const share = fleet.shares[column]?.[host] ?? NONE;
    if (share === NONE) continue;
    have += 1;
    if (share >= 1000) full += 1;
    bins[Math.min(9, Math.floor(share / 100))] += 1;
  }
  const most = Math.max(1, ...bins);
  const name = className(fleet.classes[column] ?? "");
  return h(
    Card,
    { title: `Hosts by ${name} in use`, second: `${count(full)} of ${counted(have, "host")} are full` },
    h(
      "div",
      {
        class: "histogram",
        role: "img",
        "aria-label": bins.map((number, at) => `${10 * at} to ${10 * (at + 1)}%: ${number}`).join(", "),
      },
      bins.map((number, at) =>
        h(
          "div",
          { key: at },
          h("div", {}, count(number)),
          h("span", { style: { height: `${Math.round((80 * number) / most)}px`, background: scale[at + 1] ?? "" } }),
        ),
      ),
    ),
    h("div", { class: "figure-row" }, h("span", {}, "0%"), h("span", {}, "100%")),
  );
}

/** @param {{news: any[]}} props */
function News({ news }) {
  return h(
    Card,
    { title: "Latest decisions" },
    news.length
      ? h(
          "ul",
          { class: "news" },
          news.map((each) =>
            h(
              "li",
              { key: each.uuid },
              h(
                "span",
                {
                  style: { color: each.outcome === "granted" ? "var(--granted)" : "var(--refused)" },
                  "aria-label": each.outcome,
                },
                each.outcome === "granted" ? "✓" : "✕",
              ),
              h("div", { class: "second" }, h(Link, { to: `/decisions/${each.uuid}` }, each.text)),
              h("span", { class: "second" }, clock(each.time)),
            ),
          ),
        )
      : h("p", { class: "second" }, "None yet."),
  );
}

/** The groups of the map as a table. @param {{summary: any[], colour: string, by: string}} props */
export function Groups({ summary, colour, by }) {
  const share = (/** @type {number | null} */ value) => (value === null ? "–" : percent(value));
  return h(
    "details",
    { class: "card flush", style: "margin-top:12px" },
    h(
      "summary",
      { class: "card-head", style: "cursor:pointer" },
      `As a table: ${colour === "fit" ? "how many fit" : className(colour)} by ${GROUPINGS.find((each) => each.value === by)?.name ?? by}`,
    ),
    h(Table, {
      label: "Groups of hosts",
      rows: summary,
      keyOf: (row) => row.name,
      columns: [
        { title: "Group", cell: (row) => row.name },
        { title: "Hosts", isNumber: true, cell: (row) => count(row.hosts) },
        ...(summary.some((row) => row.fits !== null)
          ? [{ title: "More fit", isNumber: true, cell: (/** @type {any} */ row) => count(row.fits ?? 0) }]
          : []),
        { title: "Mean", isNumber: true, cell: (row) => share(row.mean) },
        { title: "Lowest tenth", isNumber: true, cell: (row) => share(row.low) },
        { title: "Highest tenth", isNumber: true, cell: (row) => share(row.high) },
        { title: "Full", isNumber: true, cell: (row) => count(row.full) },
        { title: "Down", isNumber: true, cell: (row) => count(row.down) },
      ],
    }),
  );
}
