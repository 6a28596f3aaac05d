/** Flavors by zones: how many more instances fit now. */
import { useState } from "preact/hooks";
import { h } from "preact";
import { count } from "../page/format.js";
import { Card, Table } from "../parts/elements.js";
import { shortageOf, useCounts } from "./counts.js";

const STEP = 12; // flavors at first, and more with each press

/** A count of instances; `+`: counting stopped there. @param {{answer: any}} props */
export function Fit({ answer }) {
  if (answer === undefined) return h("span", { class: "second" }, "…");
  if (answer === null) return h("span", { class: "second" }, "–");
  if (answer instanceof Error) return h("span", { class: "second", title: answer.message }, "failed");
  const text = answer.is_at_least ? `at least ${count(answer.count)}` : count(answer.count);
  return h("span", { class: answer.count ? "" : "zero" }, text);
}

/** What runs out first. @param {{answer: any}} props */
export function Shortage({ answer }) {
  if (answer === undefined || answer instanceof Error) return null;
  return h("span", { class: "second nowrap" }, shortageOf(answer));
}

/** @param {{wishes: import("./counts.js").Wish[]}} props */
export function FlavorTable({ wishes }) {
  const [limit, setLimit] = useState(STEP);
  const [turn, setTurn] = useState(0);
  const shown = wishes.slice(0, limit);
  const answers = useCounts(shown, null, turn);
  const zones = answers.find((each) => each?.zones?.length)?.zones.map((/** @type {any} */ zone) => zone.name) ?? [];
  const isBusy = shown.some((_, at) => answers[at] === undefined);
  const rows = shown.map((wish, at) => ({ at, name: wish.name, answer: answers[at] }));
  return h(
    Card,
    {
      title: "How many more fit",
      second: isBusy ? "Counting …" : "Instances that could be placed one after another, by zone",
      flush: true,
      acts: h(
        "button",
        { class: "button small", type: "button", disabled: isBusy, onClick: () => setTurn(turn + 1) },
        "Count again",
      ),
    },
    h(Table, {
      label: "How many more instances of each flavor fit, by zone",
      rows,
      keyOf: (row) => row.at,
      empty: "No flavor is stored, and nothing was requested yet.",
      columns: [
        { title: "Flavor", cell: (row) => row.name, class: "nowrap" },
        { title: "All zones", isNumber: true, class: "strong", cell: (row) => h(Fit, { answer: row.answer }) },
        ...zones.map((/** @type {string} */ zone) => ({
          title: zone,
          isNumber: true,
          cell: (/** @type {any} */ row) => h(Fit, { answer: inZone(row.answer, zone) }),
        })),
        { title: "Runs out first", cell: (row) => h(Shortage, { answer: row.answer }) },
      ],
    }),
    wishes.length > limit
      ? h(
          "div",
          { class: "table-end" },
          h(
            "button",
            { class: "button small", type: "button", onClick: () => setLimit(limit + STEP) },
            `Show more of ${count(wishes.length)}`,
          ),
        )
      : null,
  );
}

/** @param {any} answer @param {string} zone */
function inZone(answer, zone) {
  if (answer === undefined || answer instanceof Error) return answer;
  return answer.zones.find((/** @type {any} */ each) => each.name === zone) ?? null;
}
