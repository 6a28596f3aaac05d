/** Two questions: what if hosts are added, and what if a zone is lost. Nothing is changed. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { h } from "preact";
import { className, count, counted, percent, shortAmount } from "../page/format.js";
import { fleet as fleetData, follow, nameOf, problem } from "../fleet/fleet_data.js";
import { DISABLED, DOWN, DRAINING } from "../fleet/fleet_file.js";
import { kindName } from "../fleet/groups.js";
import { Card, Problem, Table } from "../parts/elements.js";
import { SelectField, TextField } from "../parts/fields.js";
import { useCounts } from "./counts.js";
import { Fit, Shortage } from "./flavor_table.js";
import { outlookWith } from "./outlook.js";
import { loadRecent } from "./recent.js";
import { leftText } from "./trend.js";

/** @typedef {import("./outlook.js").Outlook} Outlook */
/** @typedef {{title: string, change: import("./counts.js").Change, more: Record<string, number>, isMove: boolean}} Question */
/** @typedef {{host: number, name: string, hosts: number, amounts: Record<string, number>}} Kind */

const WISHES_MAX = 24;
const KINDS_MAX = 40;
const ADDED_MAX = 10_000;
const NO_WISHES = /** @type {import("./counts.js").Wish[]} */ ([]);

/**
 * The kinds of hosts by zone, with a host of each that is in service; the most frequent first.
 * @param {import("../fleet/fleet_file.js").Fleet} fleet
 * @returns {Kind[]}
 */
function kindsOf(fleet) {
  /** @type {Map<string, Kind & {isInService: boolean}>} */
  const found = new Map();
  for (let host = 0; host < fleet.hosts; host += 1) {
    const kind = /** @type {number} */ (fleet.kind[host]);
    const zone = fleet.places[/** @type {number} */ (fleet.place[host])]?.zone ?? "";
    const key = `${kind} ${zone}`;
    const isInService = !((fleet.states[host] ?? 0) & (DOWN | DISABLED | DRAINING));
    const known = found.get(key);
    if (!known) {
      const amounts = fleet.kinds[kind] ?? {};
      const name = `${kindName(amounts)}${zone ? `, ${zone}` : ""}`;
      found.set(key, { host, name, hosts: 1, amounts, isInService });
    } else {
      known.hosts += 1;
      if (isInService && !known.isInService) Object.assign(known, { host, isInService });
    }
  }
  return [...found.values()].sort((left, right) => right.hosts - left.hosts).slice(0, KINDS_MAX);
}

/** @param {{wishes: import("./counts.js").Wish[], outlooks: Outlook[], zones: string[]}} props */
export function WhatIf({ wishes, outlooks, zones }) {
  const [question, setQuestion] = useState(/** @type {Question | null} */ (null));
  return h(
    Card,
    { title: "What if", second: "A dry run on a copy of the fleet: nothing is changed." },
    h(
      "div",
      { class: "halves what-if" },
      h(AddHosts, { onAsk: setQuestion }),
      h(LoseZone, { zones, onAsk: setQuestion }),
    ),
    question
      ? h(Result, { key: JSON.stringify(question.change), question, wishes: wishes.slice(0, WISHES_MAX), outlooks })
      : null,
  );
}

/** @param {{onAsk: (question: Question) => void}} props */
function AddHosts({ onAsk }) {
  useEffect(follow, []);
  const fleet = fleetData.value;
  const error = problem.value;
  const kinds = useMemo(() => (fleet ? kindsOf(fleet) : []), [fleet]);
  const [number, setNumber] = useState("10");
  const [at, setAt] = useState("0");
  const kind = kinds[Number(at)];
  const hosts = Number(number);
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (!kind) return;
    const more = Object.fromEntries(Object.entries(kind.amounts).map(([name, amount]) => [name, hosts * amount]));
    const change = { add_hosts: [{ like: nameOf(kind.host), count: hosts }] };
    onAsk({ title: `With ${counted(hosts, "more host")} of ${kind.name}`, change, more, isMove: false });
  };
  return h(
    "form",
    { class: "stack", "aria-label": "Add hosts", onSubmit: submit },
    h("h3", {}, "Add hosts"),
    h(TextField, {
      label: "Number of hosts",
      type: "number",
      min: 1,
      max: ADDED_MAX,
      required: true,
      value: number,
      onText: setNumber,
    }),
    h(SelectField, {
      label: "Kind",
      value: at,
      options: kinds.map((each, index) => ({
        value: String(index),
        name: `${each.name} (${counted(each.hosts, "host")} now)`,
      })),
      onChoose: setAt,
    }),
    h("div", {}, h("button", { class: "button primary", type: "submit", disabled: !kind }, "Count with these hosts")),
    h(Problem, { error }),
  );
}

/** @param {{zones: string[], onAsk: (question: Question) => void}} props */
function LoseZone({ zones, onAsk }) {
  const [chosen, setChosen] = useState("");
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const [isBusy, setBusy] = useState(false);
  const zone = chosen || (zones[0] ?? "");
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const more = await capacityOf(zone);
      onAsk({ title: `Without ${zone}`, change: { without_zones: [zone] }, more, isMove: true });
    } catch (failure) {
      setError(/** @type {Error} */ (failure));
    }
    setBusy(false);
  };
  return h(
    "form",
    { class: "stack", "aria-label": "Lose a zone", onSubmit: submit },
    h("h3", {}, "Lose a zone"),
    h(SelectField, {
      label: "Zone",
      value: zone,
      options: zones.map((each) => ({ value: each, name: each })),
      onChoose: setChosen,
    }),
    h(
      "div",
      {},
      h("button", { class: "button primary", type: "submit", disabled: !zone || isBusy }, "Count without this zone"),
    ),
    h(Problem, { error }),
  );
}

/** The capacity that a lost zone takes away, as negative amounts. @param {string} zone */
async function capacityOf(zone) {
  const history = await loadRecent(zone);
  /** @type {Record<string, number>} */
  const less = {};
  for (const each of history.classes) {
    const last = each.capacity.findLast((/** @type {number | null} */ value) => value !== null);
    less[each.resource_class] = -(last ?? 0);
  }
  return less;
}

/** @param {{question: Question, wishes: import("./counts.js").Wish[], outlooks: Outlook[]}} props */
function Result({ question, wishes, outlooks }) {
  const then = useCounts(wishes, question.change);
  const isCounted = wishes.every((_, at) => then[at] !== undefined);
  const now = useCounts(isCounted ? wishes : NO_WISHES, null);
  const rows = wishes.map((wish, at) => ({ at, name: wish.name, now: now[at], then: then[at] }));
  const isBusy = rows.some((row) => row.now === undefined || row.then === undefined);
  const isUseless = (/** @type {any} */ row) => row.now?.count === 0 && row.then?.count === 0;
  const useless = rows.filter(isUseless).map((row) => row.name);
  return h(
    "div",
    { class: "stack what-if-result" },
    h("h3", {}, question.title),
    h("p", { class: "second", role: "status" }, isBusy ? "Counting …" : ""),
    h(Table, {
      label: `How many more fit: ${question.title}`,
      rows: rows.filter((row) => !isUseless(row)),
      keyOf: (row) => row.at,
      empty: "No flavor fits, now or then.",
      columns: [
        { title: "Flavor", cell: (row) => row.name, class: "nowrap" },
        { title: "Fit now", isNumber: true, cell: (row) => h(Fit, { answer: row.now }) },
        { title: "Fit then", isNumber: true, class: "strong", cell: (row) => h(Fit, { answer: row.then }) },
        { title: "Difference", isNumber: true, cell: (row) => difference(row.now, row.then) },
        { title: "Would run out first", cell: (row) => h(Shortage, { answer: row.then }) },
      ],
    }),
    useless.length ? h("p", { class: "second" }, `Fit neither now nor then: ${useless.join(", ")}.`) : null,
    h(Classes, { question, outlooks }),
  );
}

/** @param {any} now @param {any} then */
function difference(now, then) {
  if (now === undefined || then === undefined || now instanceof Error || then instanceof Error) return "–";
  const change = then.count - now.count;
  return change > 0 ? `+${count(change)}` : change < 0 ? `−${count(-change)}` : "0";
}

/** @param {{question: Question, outlooks: Outlook[]}} props */
function Classes({ question, outlooks }) {
  const rows = outlooks
    .filter((each) => question.more[each.name])
    .map((each) => ({ now: each, then: outlookWith(each, question.more[each.name] ?? 0) }));
  if (!rows.length) return null;
  return [
    h(Table, {
      key: "t",
      label: `Use of resources: ${question.title}`,
      rows,
      keyOf: (row) => row.now.name,
      columns: [
        { title: "Resource", cell: (row) => className(row.now.name) },
        { title: "Used now", isNumber: true, cell: (row) => percent(row.now.used / (row.now.capacity || 1)) },
        {
          title: "Used then",
          isNumber: true,
          class: "strong",
          cell: (row) => (row.then.share === Infinity ? "nothing left" : percent(row.then.share)),
        },
        { title: "Time left now", isNumber: true, cell: (row) => (row.now.left ? leftText(row.now.left).main : "–") },
        {
          title: "Time left then",
          isNumber: true,
          cell: (row) =>
            row.then.missing
              ? h("span", { class: "notable" }, `${shortAmount(row.now.name, row.then.missing)} too little`)
              : row.then.left
                ? leftText(row.then.left).main
                : "–",
        },
      ],
    }),
    question.isMove
      ? h(
          "p",
          { key: "p", class: "second" },
          "The flavors are counted as if the instances of the zone were gone; use and time left, as if all of them moved to the other zones.",
        )
      : null,
  ];
}
