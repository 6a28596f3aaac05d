/** The present: rates, latencies, reasons, operations in flight, agents, and the events themselves. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { h } from "preact";
import { call, may } from "../page/api.js";
import { age, clock, count, counted, duration, shortTime } from "../page/format.js";
import { useLoad } from "../page/load.js";
import { Link, setQuery } from "../page/router.js";
import { listen, mayListen } from "../page/stream.js";
import { Card, Head, Meter, NoRight, Table } from "../parts/elements.js";
import { Input } from "../parts/fields.js";
import { chosenOf, ChoiceFilter } from "../parts/filters.js";
import { operationLink } from "../parts/links.js";
import { Plot } from "../parts/plot.js";
import { kindText } from "../parts/event_words.js";
import { forget, lines, rates, reasons, take, turn, WINDOW_S } from "./live_data.js";

const STEP_S = 5;
const LINES_SHOWN = 200;
const KINDS = [
  { value: "", name: "All" },
  { value: "decision", name: "Decisions" },
  { value: "refused", name: "Refused, failed" },
  { value: "story", name: "Instances" },
  { value: "change", name: "Changes" },
];

// The data grows from the first view of this page on, also while another view is shown.
let isListening = false;

export function LiveView() {
  useEffect(() => {
    if (isListening) return;
    isListening = true;
    listen((event) => take(event, Date.now() / 1000));
  }, []);
  const now = useClock();
  if (!mayListen()) return h("div", {}, h(Head, { title: "Live" }), h(NoRight, { to: "see events" }));
  return h(Whole, { now });
}

/** @param {{now: number}} props */
function Whole({ now }) {
  const shown = useMemo(() => rates(now, STEP_S), [now]);
  const last = shown.granted.length - 2;
  const perSecond = (shown.granted[last] ?? 0) + (shown.refused[last] ?? 0);
  return h(
    "div",
    {},
    h(Head, {
      title: "Live",
      second: `${perSecond.toFixed(1)} decisions a second · the last ${WINDOW_S / 60} minutes, since you opened this page`,
    }),
    h(
      "div",
      { class: "columns" },
      h(
        "div",
        { class: "stack" },
        h(
          "div",
          { class: "halves" },
          h(
            Card,
            { title: "Decisions a second" },
            h(Plot, {
              label: "Decisions a second",
              times: shown.times,
              format: (value) => value.toFixed(1),
              lines: [
                { label: "granted", colour: "--used", values: shown.granted, isFilled: true },
                { label: "refused", colour: "--refused-fill", values: shown.refused, isDashed: true },
              ],
            }),
          ),
          h(
            Card,
            { title: "Time to decide" },
            h(Plot, {
              label: "Time to decide",
              times: shown.times,
              format: (value) => shortTime(value),
              lines: [
                { label: "median", colour: "--used", values: shown.median },
                { label: "99th percentile", colour: "--weigher-3", values: shown.high, isDashed: true },
              ],
            }),
          ),
        ),
        h(Stream, {}),
      ),
      h("div", { class: "stack" }, h(Reasons, { now }), h(InFlight, {}), h(Agents, {})),
    ),
  );
}

/** The time, each second. */
function useClock() {
  const [now, setNow] = useState(Math.floor(Date.now() / 1000));
  useEffect(() => {
    const timer = setInterval(() => document.hidden || setNow(Math.floor(Date.now() / 1000)), 1000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

/** @param {{now: number}} props */
function Reasons({ now }) {
  forget(now);
  const rows = [...reasons].sort((left, right) => right[1] - left[1]).slice(0, 8);
  const most = rows[0]?.[1] ?? 1;
  return h(
    Card,
    { title: "Refusals by reason", second: `In the last ${WINDOW_S / 60} minutes` },
    rows.length
      ? h(
          "div",
          { class: "stack" },
          rows.map(([reason, number]) =>
            h(
              "div",
              { key: reason },
              h("div", { class: "figure-row" }, h("span", {}, reason), count(number)),
              h(Meter, { share: number / most, label: counted(number, "refusal") }),
            ),
          ),
        )
      : h("p", { class: "second" }, "None."),
  );
}

function InFlight() {
  const loaded = useLoad(
    (signal) =>
      may("operations:list")
        ? call("GET", "/operations", { query: { outcome: "open", limit: 50 }, signal })
        : Promise.resolve({ operations: [] }),
    [],
    { everyMs: 3000 },
  );
  const operations = loaded.data?.operations ?? [];
  return h(
    Card,
    {
      title: "Operations in flight",
      second: operations.length ? counted(operations.length, "operation") : "None",
      flush: true,
    },
    operations.length
      ? h(Table, {
          label: "Operations in flight",
          rows: operations.slice(0, 12),
          keyOf: (row) => row.uuid,
          columns: [
            { title: "Kind", cell: (row) => operationLink(row.uuid, kindText(row.kind)) },
            { title: "Step", cell: (row) => row.step },
            { title: "Age", isNumber: true, cell: (row) => duration(Date.now() / 1000 - row.created_at_s) },
          ],
        })
      : null,
  );
}

function Agents() {
  const loaded = useLoad(
    (signal) => (may("status:show") ? call("GET", "/status", { signal }) : Promise.resolve(null)),
    [],
    { everyMs: 5000 },
  );
  const status = loaded.data;
  if (!status) return null;
  const { hosts, agents } = status;
  return h(
    Card,
    { title: "Hosts and agents" },
    h("p", {}, `${count(hosts.up)} up, ${count(hosts.down)} down, ${count(hosts.disabled)} disabled`),
    agents
      ? h(
          "p",
          { class: agents.silent ? "problem" : "second" },
          agents.silent
            ? `${counted(agents.silent, "agent")} silent`
            : `${counted(agents.reporting, "agent")} reporting`,
        )
      : null,
  );
}

function Stream() {
  const [isPaused, setPaused] = useState(false);
  const filter = chosenOf("show");
  const text = chosenOf("find");
  const [frozen, setFrozen] = useState(/** @type {import("./live_data.js").Line[]} */ ([]));
  const [, redraw] = useState(0);
  useEffect(() => {
    let timer = 0;
    const end = turn.subscribe(() => {
      timer ||= setTimeout(() => {
        timer = 0;
        redraw((before) => before + 1);
      }, 250);
    });
    return () => {
      clearTimeout(timer);
      end();
    };
  }, []);
  const pause = () => {
    setFrozen([...lines]);
    setPaused(!isPaused);
  };
  const wanted = text.toLowerCase();
  const shown = (isPaused ? frozen : lines)
    .filter(
      (line) => (!filter || line.type === filter || line.tone === filter) && line.text.toLowerCase().includes(wanted),
    )
    .slice(0, LINES_SHOWN);
  return h(
    Card,
    { title: "Events", flush: true },
    h(
      "div",
      { class: "bar-of-tools card-tools" },
      h(ChoiceFilter, { name: "show", label: "Kind of events", options: KINDS }),
      h(Input, {
        type: "search",
        placeholder: "Filter",
        "aria-label": "Filter events by text",
        value: text,
        onText: (find) => setQuery({ find }),
      }),
      h(
        "button",
        { class: "button", type: "button", "aria-pressed": isPaused ? "true" : "false", onClick: pause },
        isPaused ? "Resume" : "Pause",
      ),
    ),
    shown.length
      ? h(
          "ol",
          { class: "events", tabIndex: 0, "aria-label": "Events, newest first" },
          shown.map((line) =>
            h(
              "li",
              { key: line.id, class: line.tone },
              h("time", { class: "second", title: age(line.time) }, clock(line.time)),
              line.link ? h(Link, { to: line.link }, line.text) : h("span", {}, line.text),
            ),
          ),
        )
      : h(
          "div",
          { class: "empty" },
          lines.length ? "No event matches." : "No event yet. They appear here as they happen.",
        ),
  );
}
