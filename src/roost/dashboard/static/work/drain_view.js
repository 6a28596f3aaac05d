/** Drains: a plan before the start, and the progress of those that have started. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { h } from "preact";
import { call, may } from "../page/api.js";
import { fleet, follow, nameOf } from "../fleet/fleet_data.js";
import { compareNames, counted } from "../page/format.js";
import { useLoad } from "../page/load.js";
import { go, place, setQuery } from "../page/router.js";
import { ActDialog } from "../parts/act.js";
import { Card, Loaded, Meter, NoRight, Select, Table } from "../parts/elements.js";
import { CheckField, Input, TextField } from "../parts/fields.js";
import { drainPath, hostLink, instanceLink } from "../parts/links.js";
import { statusText } from "./acts.js";
import { ApplyButton } from "./apply_button.js";
import { loadPlan, loadRoomPlan } from "./drain_plan.js";
import { DrainProgressCards, OpenDrains } from "./drain_progress.js";
import { WorkHead } from "./frame.js";
import { sumUp } from "./sums.js";

const RACK_MAX = 200; // hosts; more names make an address too long

const HOW = /** @type {Record<string, string>} */ ({
  live_migrate: "live migration",
  migrate: "stopped, by migration",
  offload: "offload of its saved disk",
});

/** @param {string | null} text */
const namesOf = (text) => [
  ...new Set(
    (text ?? "")
      .split(",")
      .map((each) => each.trim())
      .filter(Boolean),
  ),
];

export function DrainView() {
  const { query } = place.value;
  const hosts = namesOf(query.get("hosts"));
  const operations = namesOf(query.get("operations"));
  const second = "Take all instances off hosts, a few at a time";
  return h(
    "div",
    {},
    h(WorkHead, { current: "/drains", second }),
    operations.length
      ? h(DrainProgressCards, { key: operations.join(), uuids: operations })
      : hosts.length
        ? may("hosts:drain")
          ? h(Planned, { key: hosts.join(), hosts })
          : h(NoRight, { to: "drain hosts" })
        : h(Start, {}),
  );
}

/** The racks in the order of their names, with their hosts. @returns {{rack: string, hosts: string[]}[]} */
function useRacks() {
  useEffect(() => (may("fleet:columns") ? follow() : undefined), []);
  const present = fleet.value;
  return useMemo(() => {
    if (!present) return [];
    const hosts = present.racks.map(() => /** @type {string[]} */ ([]));
    for (let host = 0; host < present.hosts; host += 1) hosts[present.rack[host] ?? 0]?.push(nameOf(host));
    return present.racks
      .map((rack, at) => ({ rack, hosts: hosts[at] ?? [] }))
      .filter(({ rack, hosts: ofRack }) => rack && ofRack.length && ofRack.length <= RACK_MAX)
      .sort((left, right) => compareNames(left.rack, right.rack));
  }, [present]);
}

/** The hosts to drain, as text or as a rack, and the drains under way. */
function Start() {
  const [text, setText] = useState("");
  const racks = useRacks();
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const names = namesOf(text);
    if (names.length) go(drainPath(names));
  };
  return h(
    "div",
    { class: "stack" },
    may("hosts:drain")
      ? h(
          Card,
          {
            title: "Plan a drain",
            second: "Name hosts, choose a rack, or select hosts on the map.",
          },
          h(
            "form",
            { class: "bar-of-tools", onSubmit: submit },
            h(Input, {
              size: 40,
              placeholder: "host-1, host-2",
              "aria-label": "Hosts to drain, separated by commas",
              value: text,
              onText: setText,
            }),
            h("button", { class: "button primary", type: "submit", disabled: !text.trim() }, "Show the plan"),
            racks.length
              ? h(Select, {
                  label: "Rack",
                  value: "",
                  options: [
                    { value: "", name: "Choose a rack …" },
                    ...racks.map(({ rack, hosts }) => ({
                      value: rack,
                      name: `${rack} (${counted(hosts.length, "host")})`,
                    })),
                  ],
                  onChoose: (rack) => {
                    const chosen = racks.find((each) => each.rack === rack);
                    setText([...(chosen?.hosts ?? [])].sort(compareNames).join(", "));
                  },
                })
              : null,
          ),
        )
      : null,
    h(OpenDrains, { host: "" }),
  );
}

/** @param {{hosts: string[]}} props */
function Planned({ hosts }) {
  const { query } = place.value;
  const atOnce = Number(query.get("at_once") ?? 2);
  const hasOthers = query.get("others") === "1" && may("plans:drain");
  const loaded = useLoad(
    (signal) => (hasOthers ? loadRoomPlan(hosts, signal) : loadPlan(hosts, { atOnce, disable: true }, signal)),
    [hosts.join(), atOnce, hasOthers],
  );
  return h(
    "div",
    { class: "stack" },
    h(
      "div",
      { class: "bar-of-tools" },
      h(Select, {
        label: hasOthers ? "Instances that move at once" : "Instances that move at once, for each host",
        value: String(atOnce),
        options: [1, 2, 4, 8, 16, 32].map((value) => ({ value: String(value), name: `${value} at once` })),
        onChoose: (value) => setQuery({ at_once: value }),
      }),
      h("button", { class: "button", type: "button", disabled: loaded.isLoading, onClick: loaded.again }, "Plan again"),
      loaded.data?.services.length
        ? h(hasOthers ? ApplyButton : StartButton, { key: String(hasOthers), plan: loaded.data, atOnce })
        : null,
      may("plans:drain")
        ? h(CheckField, {
            label: "Let other instances make room",
            isOn: hasOthers,
            onChange: (isOn) => setQuery({ others: isOn ? "1" : "" }),
          })
        : null,
    ),
    h(Loaded, { of: loaded, children: (plan) => h(Plan, { plan }) }),
  );
}

/** @param {{plan: import("./drain_plan.js").Plan}} props */
function Plan({ plan }) {
  const { going, staying, live, arrivals, reasons } = sumUp(plan.moves);
  const problems = Object.entries(plan.problems);
  const most = arrivals[0]?.[1] ?? 1;
  return h(
    "div",
    { class: "stack" },
    h(
      "div",
      { class: "verdict card", role: "status" },
      h("div", { class: `verdict-sign ${staying.length ? "refused" : "granted"}` }, staying.length ? "!" : "✓"),
      h(
        "div",
        { class: "verdict-text" },
        h("strong", {}, plan.text ?? planText(plan.services, going.length, staying.length)),
        going.length ? ` ${counted(live, "instance")} by live migration.` : "",
        h(
          "div",
          { class: "second" },
          `This plan holds if nothing else changes, and all live migrations succeed. ${plan.note ?? ""}`,
        ),
      ),
    ),
    problems.length
      ? h(
          "div",
          { class: "problem" },
          problems.map(([name, text]) => h("div", { key: name }, h("strong", {}, name), `: ${text}`)),
        )
      : null,
    h(
      "div",
      { class: "columns" },
      h(
        "div",
        { class: "stack" },
        staying.length ? h(Staying, { reasons, count: staying.length }) : null,
        h(
          Card,
          { title: `Moves: ${counted(going.length, "instance")}`, flush: true },
          h(Table, {
            label: "Moves",
            rows: going,
            keyOf: (row) => row.uuid,
            empty: "No instance moves.",
            columns: [
              ...(plan.steps ? [{ title: "Move", isNumber: true, cell: (/** @type {any} */ row) => row.number }] : []),
              { title: "Instance", class: "nowrap", cell: (row) => instanceLink(row.uuid, row.name) },
              ...(plan.steps ? [] : [{ title: "Status", cell: (/** @type {any} */ row) => statusText(row.status) }]),
              { title: "From", class: "nowrap", cell: (row) => row.source },
              { title: "To", class: "nowrap", cell: (row) => (row.host ? ["→ ", row.host] : "no host") },
              { title: "How", cell: (row) => HOW[row.how] ?? row.how },
              ...(plan.steps
                ? [
                    { title: "After", cell: (/** @type {any} */ row) => row.after.join(", ") || "–" },
                    { title: "Reason", cell: (/** @type {any} */ row) => row.reason },
                  ]
                : []),
            ],
          }),
        ),
      ),
      h(
        Card,
        { title: "Arrivals by host", second: counted(arrivals.length, "host") },
        h(
          "div",
          { class: "stack" },
          arrivals
            .slice(0, 30)
            .map(([host, number]) =>
              h(
                "div",
                { key: host },
                h("div", { class: "figure-row" }, hostLink(host), counted(number, "instance")),
                h(Meter, { share: number / most, label: `${counted(number, "instance")} to ${host}` }),
              ),
            ),
          arrivals.length > 30
            ? h("p", { class: "second" }, `and ${counted(arrivals.length - 30, "more host")}`)
            : null,
        ),
      ),
    ),
  );
}

/** @param {string[]} services @param {number} going @param {number} staying */
function planText(services, going, staying) {
  if (!services.length) return "None of these hosts can be drained.";
  const where = services.length === 1 ? services[0] : counted(services.length, "host");
  if (!going && !staying) return `No instance is on ${where}.`;
  if (!staying) return `${counted(going, "instance")} would leave ${where}, and none would stay.`;
  return `${counted(going, "instance")} would leave ${where}, and ${staying} would stay.`;
}

/** @param {{reasons: [string, any[]][], count: number}} props */
function Staying({ reasons, count }) {
  return h(
    Card,
    { title: `Instances that stay: ${count}`, flush: true },
    h(Table, {
      label: "Instances that stay",
      rows: reasons,
      keyOf: (row) => row[0],
      columns: [
        { title: "Reason", cell: ([reason, moves]) => h("span", { title: moves[0]?.problem }, reason) },
        {
          title: "Instances",
          class: "stays-cell",
          cell: (row) =>
            row[1]
              .slice(0, 20)
              .map((/** @type {any} */ move, /** @type {number} */ at) => [
                at ? ", " : "",
                move.uuid ? instanceLink(move.uuid, move.name) : "other claims",
                ` on ${move.source}`,
              ]),
        },
      ],
    }),
  );
}

/** @param {{plan: import("./drain_plan.js").Plan, atOnce: number}} props */
function StartButton({ plan, atOnce }) {
  const [isOpen, setOpen] = useState(false);
  const [reason, setReason] = useState("it is drained");
  const [isDisabling, setDisabling] = useState(true);
  const { services } = plan;
  const what = services.length === 1 ? String(services[0]) : counted(services.length, "host");
  const start = async (/** @type {Record<string, string>} */ headers) => {
    // All hosts are disabled before the first move, so no instance moves to another host of this drain.
    if (isDisabling && may("services:update"))
      for (const name of services)
        await call("PATCH", `/services/${encodeURIComponent(name)}`, {
          body: { disabled: true, disabled_reason: reason },
        });
    const uuids = [];
    for (const name of services) {
      const key = `${headers["idempotency-key"]}-${uuids.length}`;
      const body = { at_once: atOnce, disable: isDisabling };
      const answer = await call("POST", `/hosts/${encodeURIComponent(name)}/drain`, {
        body,
        headers: { "idempotency-key": key },
      });
      uuids.push(answer.operation);
    }
    return uuids;
  };
  return [
    h(
      "button",
      { key: "b", class: "button primary", type: "button", onClick: () => setOpen(true) },
      "Start the drain …",
    ),
    isOpen
      ? h(
          ActDialog,
          {
            key: "d",
            title: `Drain ${what}`,
            verb: "Start the drain",
            act: start,
            onClose: () => setOpen(false),
            onDone: (uuids) => go(`/drains?operations=${uuids.join(",")}`),
          },
          h("p", {}, `${counted(plan.moves.length, "instance")} on ${what}, ${atOnce} at once for each host.`),
          h(CheckField, {
            label: "Disable first, so that no new instances arrive",
            isOn: isDisabling,
            onChange: setDisabling,
          }),
          isDisabling && may("services:update")
            ? h(TextField, { label: "Reason", value: reason, onText: setReason, maxLength: 255 })
            : null,
        )
      : null,
  ];
}
