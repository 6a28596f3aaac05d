/** The stored decisions, newest first. */
import { useState } from "preact/hooks";
import { h } from "preact";
import { call } from "../page/api.js";
import { useLoad } from "../page/load.js";
import { go, setQuery } from "../page/router.js";
import { Card, Head, Loaded, Outcome, Problem, Table, When } from "../parts/elements.js";
import { SearchForm } from "../parts/fields.js";
import { chosenOf, ChoiceFilter, PeriodFilter, periodStart } from "../parts/filters.js";
import { decisionLink, hostLink } from "../parts/links.js";
import { Pages } from "../parts/pages.js";

const UUID = /^[0-9a-f-]{6,36}$/i;
const OUTCOMES = [
  { value: "", name: "All" },
  { value: "granted", name: "Granted" },
  { value: "refused", name: "Refused" },
];

/** The query of the list for a text: a prefix of a uuid, or part of a reason. @param {string} text */
function filterOf(text) {
  if (UUID.test(text)) return { uuid: text };
  return text ? { reason: text, refused: true } : {};
}

export function DecisionsView() {
  const [outcome, period, text, cursor] = ["outcome", "period", "find", "cursor"].map((name) => chosenOf(name));
  const filters = {
    ...filterOf(text ?? ""),
    ...(outcome ? { refused: outcome === "refused" } : {}),
    cursor,
    limit: 50,
  };
  const loaded = useLoad(
    (signal) => call("GET", "/decisions", { query: { ...filters, since: periodStart() }, signal }),
    [outcome, period, text, cursor],
    { everyMs: cursor ? 0 : 5000 },
  );
  return h(
    "div",
    {},
    h(Head, { title: "Decisions", second: "Every request for hosts, with the reasons for its result" }),
    h(
      "div",
      { class: "bar-of-tools filters" },
      h(ChoiceFilter, { name: "outcome", label: "Outcome", options: OUTCOMES }),
      h(PeriodFilter, {}),
      h(Find, { text: text ?? "" }),
    ),
    h(Loaded, {
      of: loaded,
      children: (page) =>
        h(
          Card,
          { flush: true },
          h(List, {
            decisions: page.decisions,
            empty: outcome || period || text ? "No decision matches." : "No decision is stored yet.",
          }),
          h(Pages, { next: page.next, cursor: cursor ?? "" }),
        ),
    }),
  );
}

/** Find by the name or uuid of an instance, by the uuid of a decision, or by a reason. @param {{text: string}} props */
function Find({ text }) {
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const search = async (/** @type {string} */ wanted) => {
    setError(null);
    try {
      const uuid = wanted ? await decisionOf(wanted) : "";
      if (uuid) go(`/decisions/${uuid}`);
      else setQuery({ find: wanted, cursor: null });
    } catch (problem) {
      setError(/** @type {Error} */ (problem));
    }
  };
  return h(
    SearchForm,
    {
      texts: { text },
      labels: { text: "Instance, uuid, or words of a reason" },
      size: 34,
      onSearch: (texts) => void search(texts.text ?? ""),
    },
    h(Problem, { error }),
  );
}

/** The decision of an instance with a name or uuid; empty: no such instance. @param {string} text */
async function decisionOf(text) {
  if (/^[0-9a-f-]{36}$/i.test(text)) {
    const page = await call("GET", "/decisions", { query: { instance: text, limit: 1 } });
    return page.decisions[0]?.uuid ?? "";
  }
  const page = await call("GET", "/instances", { query: { name: text, limit: 1 } });
  const [instance] = page.instances;
  if (!instance) return "";
  if (instance.decision) return instance.decision;
  const decisions = await call("GET", "/decisions", { query: { instance: instance.uuid, limit: 1 } });
  return decisions.decisions[0]?.uuid ?? "";
}

/** @param {{decisions: any[], empty: string}} props */
function List({ decisions, empty }) {
  return h(Table, {
    label: "Decisions",
    rows: decisions,
    keyOf: (row) => row.uuid,
    empty,
    columns: [
      { title: "Result", cell: (row) => h(Outcome, { outcome: row.outcome }) },
      { title: "Decision", cell: (row) => decisionLink(row.uuid) },
      {
        title: "Host or reason",
        cell: (row) =>
          row.outcome === "granted"
            ? h(
                "span",
                {},
                hostLink(row.picks[0]?.node ?? ""),
                row.picks.length > 1 ? ` and ${row.picks.length - 1} more` : "",
              )
            : row.reason,
      },
      { title: "Instances", isNumber: true, cell: (row) => row.count },
      { title: "Project", cell: (row) => row.project_id || "–" },
      { title: "Time", isNumber: true, cell: (row) => h(When, { seconds: row.decided_at_s, isExact: true }) },
    ],
  });
}
